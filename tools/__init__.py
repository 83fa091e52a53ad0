"""Tools of this project itself: they find mistakes in the scheduler, outside of the package.

    faults         the whole service under faults, from a seed (make soak)
    hostile        what objects made to be expensive cost other pods
    port_attacks   what clients without credentials delay
    fuzz           arbitrary input for every decoder and parser (make fuzz)
    near           the tests near a change (make near)
    mutation       changes of single operators that no test finds (make mutate)
    schemas        the JSON Schemas and the words of completion, made of the structs (make docs)

The other modules are what tests of the whole process share. `kubestow` imports nothing of this
folder, and what authors of plugins use in their tests is in `kubestow.testing`.
"""
