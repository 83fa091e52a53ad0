"""A plan as a shell script with kubectl: it stops where the cluster does something else.

An eviction has the UID of its pod, so no other pod of that name is evicted. After each one the
script waits for a pod of the same controller that was not there before, checks that it is on the
node of the plan, and goes on when it is ready and the evicted pod is gone. A gang is evicted whole:
each member is first evicted without effect, so that a refusal is found before any of them is gone.
A surge is as `surge_run` does it, and is taken back if the script ends before the new pod is ready.
"""

import shlex
from collections.abc import Iterator
from typing import Final

import msgspec

from kubestow.simulator.controllers.pods import DELETION_COST
from kubestow.simulator.rebalance.plan import (
    EvictedPod,
    PlanStep,
    PlanUnit,
    RebalancePlan,
    ScaledOwner,
)
from kubestow.simulator.rebalance.surge_run import MARK
from kubestow.simulator.rebalance.surging import LOWEST_COST

_FUNCTIONS: Final = r"""
fail() { echo "stopped: $*" >&2; exit 1; }

# NAMESPACE: UID, node, time of deletion, readiness, owners and names of its pods.
pods() {
  kubectl get pods -n "$1" --no-headers -o custom-columns='U:.metadata.uid,N:.spec.nodeName,'\
'D:.metadata.deletionTimestamp,R:.status.conditions[?(@.type=="Ready")].status,'\
'O:.metadata.ownerReferences[*].uid,P:.metadata.name'
}

# NAMESPACE POD UID [OPTIONS]
request() {
  printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"},
    "deleteOptions":{"preconditions":{"uid":"%s"}%s}}' "$2" "$1" "$3" "${4-}" |
    kubectl create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f - >/dev/null ||
    fail "the eviction of $1/$2 was refused"
}

# NAMESPACE POD UID FROM TO SECONDS
evict() {
  before=$(pods "$1")
  owner=$(echo "$before" | awk -v uid="$3" -v node="$4" '$1 == uid && $2 == node { print $5 }')
  [ -n "$owner" ] || fail "pod $1/$2 is gone, or not on $4"
  request "$1" "$2" "$3"
  end=$(($(date +%s) + $6))
  while :; do
    now=$(pods "$1")
    new=$(printf '%s\n--\n%s\n' "$before" "$now" | awk -v owner="$owner" '
      $1 == "--" { after = 1; next }
      !after { known[$1] = 1; next }
      $5 == owner && $3 == "<none>" && !known[$1] { print $2, $4; exit }')
    node=${new% *}
    case $node in
      "" | "<none>" | "$5") ;;
      *) fail "the replacement of $1/$2 is on $node, not on $5" ;;
    esac
    case $now in *"$3"*) ;; *) [ "$new" != "$5 True" ] || break ;; esac
    [ "$(date +%s)" -lt "$end" ] || fail "the replacement of $1/$2 is not ready"
    sleep 1
  done
  echo "$1/$2: $4 -> $5"
}
"""
_GANG_FUNCTIONS: Final = r"""
# NAMESPACE SECONDS, then POD UID FROM TO of each member: evicts all, or none.
evict_gang() {
  gang=$(shift 2; while [ $# -gt 0 ]; do echo "$1 $2 $3 $4"; shift 4; done)
  before=$(pods "$1")
  wanted=$(printf '%s\n--\n%s\n' "$before" "$gang" | awk '
    $1 == "--" { after = 1; next }
    !after { node[$1] = $2; owner[$1] = $5; next }
    node[$2] != $3 || !owner[$2] { print "gone", $1; next }
    { print owner[$2], $4 }' | sort)
  case $wanted in *"gone "*) fail "a pod of the gang is gone, or on another node" ;; esac
  # All at once: no member shall be gone before the last one is evicted.
  for options in ',"dryRun":["All"]' ''; do
    echo "$gang" | {
      pids=
      while read -r pod uid from to; do
        request "$1" "$pod" "$uid" "$options" &
        pids="$pids $!"
      done
      for pid in $pids; do wait "$pid" || exit 1; done
    }
  done
  end=$(($(date +%s) + $2))
  while :; do
    now=$(pods "$1")
    new=$(printf '%s\n--\n%s\n--\n%s\n' "$before" "$wanted" "$now" | awk '
      $1 == "--" { part += 1; next }
      !part { known[$1] = 1; next }
      part == 1 { owners[$1] = 1; next }
      owners[$5] && $3 == "<none>" && !known[$1] { print $5, $2, $4 }')
    ready=$(echo "$new" | awk '$3 == "True" { print $1, $2 }' | sort)
    left=$(printf '%s\n--\n%s\n' "$gang" "$now" | awk '
      $1 == "--" { after = 1; next }
      !after { gone[$2] = 1; next }
      gone[$1] { print $1 }')
    [ "$ready" != "$wanted" ] || [ -n "$left" ] || break
    other=$(printf '%s\n--\n%s\n' "$wanted" "$new" | awk '
      $1 == "--" { after = 1; next }
      !after { count[$1 " " $2] += 1; next }
      $2 == "<none>" { next }
      (count[$1 " " $2] -= 1) < 0 { print $2; exit }')
    [ -z "$other" ] || fail "a replacement of the gang is on $other, where none is expected"
    [ "$(date +%s)" -lt "$end" ] || fail "the replacements of the gang are not ready"
    sleep 1
  done
  echo "$gang" | awk -v namespace="$1" '{ print namespace "/" $1 ": " $3 " -> " $4 }'
}
"""
_SURGE_FUNCTIONS: Final = r"""
# NAMESPACE POD UID FROM TO SECONDS CONTROLLER REPLICAS MARK
surge() {
  before=$(pods "$1")
  owner=$(echo "$before" | awk -v uid="$3" -v node="$4" '$1 == uid && $2 == node { print $5 }')
  [ -n "$owner" ] || fail "pod $1/$2 is gone, or not on $4"
  kubectl annotate pod -n "$1" "$2" --overwrite @COST@=@LOWEST@ "@MARK@=$9" >/dev/null
  surged="$1 $2 $owner $7 $8" scaled=
  trap take_back EXIT
  trap 'exit 1' HUP INT TERM
  kubectl scale -n "$1" "$7" --current-replicas="$8" --replicas=$(($8 + 1)) >/dev/null ||
    fail "$7 was not scaled from $8"
  scaled=true
  end=$(($(date +%s) + $6))
  while :; do
    now=$(pods "$1")
    case $now in *"$3"*) ;; *) fail "pod $1/$2 is gone" ;; esac
    node=$(echo "$now" | newest | awk '{ print $2 }')
    case $node in
      "" | "<none>" | "$5") ;;
      *) fail "the replacement of $1/$2 is on $node, not on $5" ;;
    esac
    ready=$(echo "$now" | awk -v owner="$owner" '
      $5 == owner && $3 == "<none>" { all += 1; ready += $4 == "True" }
      END { print all + 0, ready + 0 }')
    counted=$(kubectl get replicasets -n "$1" --no-headers \
      -o custom-columns='U:.metadata.uid,R:.status.readyReplicas' |
      awk -v uid="$owner" '$1 == uid { print $2 }')
    [ "$node $ready $counted" != "$5 $(($8 + 1)) $(($8 + 1)) $(($8 + 1))" ] || break
    [ "$(date +%s)" -lt "$end" ] || fail "the replacement of $1/$2 is not ready"
    sleep 1
  done
  kubectl scale -n "$1" "$7" --current-replicas=$(($8 + 1)) --replicas="$8" >/dev/null ||
    fail "$7 was not scaled down"
  trap - EXIT HUP INT TERM
  while :; do
    now=$(pods "$1")
    case $now in *"$3"*) ;; *) break ;; esac
    [ "$(date +%s)" -lt "$end" ] || fail "pod $1/$2 is not gone"
    sleep 1
  done
  echo "$1/$2: $4 -> $5"
}

# The pods of the controller that were not there before.
newest() {
  { printf '%s
--
' "$before"; cat; } | awk -v owner="$owner" '
    $1 == "--" { after = 1; next }
    !after { known[$1] = 1; next }
    $5 == owner && $3 == "<none>" && !known[$1]'
}

# The new pod goes instead of the old one.
take_back() {
  set +e
  trap - EXIT
  set -- $surged
  kubectl annotate pod -n "$1" "$2" @COST@- >/dev/null
  new=$(pods "$1" | newest | awk '{ print $6; exit }')
  if [ -n "$new" ]; then
    kubectl annotate pod -n "$1" "$new" --overwrite @COST@=@LOWEST@ >/dev/null
    sleep 5
  fi
  [ -z "$scaled" ] ||
    kubectl scale -n "$1" "$4" --current-replicas=$(($5 + 1)) --replicas="$5" >/dev/null
  kubectl annotate pod -n "$1" "$2" @MARK@- >/dev/null
  echo "took back: $1/$2 stays" >&2
}
"""
# Beyond what a step is expected to take.
_PATIENCE_S: Final = 300


def script_of(plan: RebalancePlan) -> str:
    """Evictions and closings in their order."""
    lines = [
        "#!/bin/sh",
        f"# {plan.goal}: {plan.figure_before:g} {plan.unit} before, {plan.figure_after:g} after "
        f"{plan.moves} evictions.",
        "# It stops at the first pod that is not where the plan has it.",
        "set -eu",
        _FUNCTIONS.rstrip(),
        *([_GANG_FUNCTIONS.rstrip()] if any(step.gang for step in plan.steps) else []),
        *([_surge_functions()] if any(step.scaled for step in plan.steps) else []),
        "",
        *_commands(plan),
    ]
    return "\n".join(lines) + "\n"


def _commands(plan: RebalancePlan) -> Iterator[str]:
    for unit in plan.units:
        step = unit[0]
        if step.pod is None:
            yield f"kubectl {step.action} {shlex.quote(step.node)}"
        elif step.scaled is not None:
            yield _surge(step, step.pod, step.scaled)
        elif step.gang:
            yield from _evict_gang(unit, step.pod.namespace)
        else:
            yield _evict(step, step.pod)
    if not plan.steps:
        yield "echo 'nothing to do'"


def _evict(step: PlanStep, pod: EvictedPod) -> str:
    words = (pod.namespace, pod.name, pod.uid, step.node, step.to_node, str(_patience_s(step)))
    return " ".join(("evict", *map(shlex.quote, words)))


def _surge_functions() -> str:
    texts = {"COST": DELETION_COST, "LOWEST": str(LOWEST_COST), "MARK": MARK}
    functions = _SURGE_FUNCTIONS.rstrip()
    for name, text in texts.items():
        functions = functions.replace(f"@{name}@", text)
    return functions


def _surge(step: PlanStep, pod: EvictedPod, scaled: ScaledOwner) -> str:
    words = (pod.namespace, pod.name, pod.uid, step.node, step.to_node, str(_patience_s(step)))
    controller = f"{scaled.kind.lower()}/{scaled.name}"
    more = (controller, str(scaled.replicas), msgspec.json.encode(scaled).decode())
    return " ".join(("surge", *map(shlex.quote, (*words, *more))))


def _evict_gang(unit: PlanUnit, namespace: str) -> Iterator[str]:
    lines = [f"evict_gang {shlex.quote(namespace)} {_patience_s(unit[0])}"]
    for step in unit:
        if step.pod is not None:
            words = (step.pod.name, step.pod.uid, step.node, step.to_node)
            lines.append("  " + " ".join(map(shlex.quote, words)))
    yield " \\\n".join(lines)


def _patience_s(step: PlanStep) -> int:
    return round(step.ends_at_s - step.starts_at_s) + _PATIENCE_S
