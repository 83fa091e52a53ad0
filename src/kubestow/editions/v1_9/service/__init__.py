"""The process of a v1.9 scheduler: `kubestow run --compatibility v1.9`."""
