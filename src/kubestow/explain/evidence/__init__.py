"""Why exactly a node does not fit: how much is missing, which taint, label, pod, volume or device.

    facts       what can be found, as data, each with a text for people
    context     what is read: the pod, the snapshot, the objects
    resources, taints, selection, ports, spread, other_pods, volumes, volume_limits, devices, gates
                the facts of one family of plugins
    registry    the function for each code of a reason
    collected   the facts of all nodes with one reason
    scores      what a score was made of; `score_facts` has that as data
    spelling    names that are close to one that exists
    amounts, selectors
                amounts of resources, and label selectors, as texts

Everything is made when it is asked for, of a decision that has been made and the snapshot that it
was made on. A scheduling cycle never calls this. All lists are limited, and say how many there are.
"""
