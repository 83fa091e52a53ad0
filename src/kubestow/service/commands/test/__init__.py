"""`kubestow test`: will these manifests be placed as expected?"""
