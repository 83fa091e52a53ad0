"""What a scheduler saw and decided, written to a file while it runs.

A scheduler is a function of three inputs: the changes it learns of, the answers to its requests,
and the times of both. A recording has these, and every decision. `simulator/replay` runs the same
scheduler on them again.

    format     the records, and the file they are in
    file       writes blocks of records beside the scheduler, and reads them
    kept       what of an object is recorded
    recorder   notes changes and decisions
    client     notes the answers of the API server
"""
