"""Load-aware placement on a day of a shared cluster, beside the default profile and Trimaran's."""
