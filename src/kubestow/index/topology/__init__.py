"""How many pods, or terms of pods, are on each node and in each topology domain (spec 06 §6.5).

    domain       the nodes with one value of a topology key: a zone, a rack, a host
    column       every row's domain as a number, as far as the row is eligible
    eligibility  which rows count: labels, node affinity, taints
    item         what is counted: a class of pods, or an affinity term that pods own
    ledger       how many of each item each row holds; follows the snapshot row by row
    measure      how much one item counts: for a selector, or for a pod that terms select
    tally        a measure over a ledger: one count per row
    sums         a tally summed per domain of a column
    cell         rows with the same count in a tally and the same domain

    snapshot row 7      {class 3: 2, class 8: 1}
    ledger, row 7       {class 3: 1, class 8: 1}     class 3 grew by 1 here:
    tallies of class 3  rows[7] += 1, and sums[domain of row 7] += 1

Both topology plugins and all profiles read the same counts: `TopologyCounts.at(snapshot)`. The cost
of a cycle depends on the rows that changed and the arrays it reads; none loops over pods. An
attempt that simulates pods added to or removed from a node changes its own copy (`what_if`).
"""
