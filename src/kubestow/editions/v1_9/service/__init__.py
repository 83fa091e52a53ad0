"""Older schedulers as services: `kubestow run --compatibility v1.9`, `v1.17` and `v1.20`."""
