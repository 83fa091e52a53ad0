"""The metrics of kube-scheduler, with the same names, and the text in which they are read.

    instruments   counters, gauges and histograms: a few additions per observation, no locks
    registry      all of them by name, and the text Prometheus reads
    catalogue     names, labels, buckets and help of the scheduler's own metrics (spec 09 §8.1)
    recorders     enter what engine and queue report into the catalogue
    meters        measure attempts
    evaluations   counts how often each plugin is asked
    component     the metrics of every Kubernetes component (§8.2)
    own           what kube-scheduler does not count
    pod_resources requests and limits of all pods (§8.3)

The instruments are our own because those of prometheus-client cost several times more: an attempt
makes some fifty observations, and a scrape would block the event loop for a tenth of a second.
"""
