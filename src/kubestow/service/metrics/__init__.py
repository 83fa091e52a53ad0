"""What the process counts and how it is read: the metrics of kube-scheduler, name for name.

    instruments   counters, gauges and histograms: a few additions per observation, no locks
    registry      all of them by name, and the text Prometheus reads
    catalogue     names, labels, buckets and words of the scheduler's own metrics (spec 09 §8.1)
    recorders     what the engine, the queue and the client tell, entered into the catalogue
    component     what every component of Kubernetes shows (§8.2)
    pod_resources requests and limits of all pods (§8.3)

The instruments are our own because the library's cost several times more: an attempt makes some
fifty observations, and a scrape of a large registry would keep the event loop for a tenth of a
second.
"""
