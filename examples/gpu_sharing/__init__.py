"""GPU sharing as in Alibaba's openb traces, and the policies of the FGD paper, as plugins.

An example for authors of plugins: nothing here is part of kubestow. README.md describes it.
"""
