from kubestow.testing.hostile.run import HostileRun
from kubestow.testing.hostile.cases import ALL_CASES as CASES
import sys, argparse, logging
p = argparse.ArgumentParser()
p.add_argument("--nodes", type=int, default=5000)
p.add_argument("--scale", type=float, default=1.0)
p.add_argument("--watch", type=float, default=3.0)
p.add_argument("names", nargs="*")
if __name__ == "__main__":
    a = p.parse_args()
    logging.disable(logging.CRITICAL)
    cases = [c for c in CASES if not a.names or any(n in c.name for n in a.names)]
    def show(m):
        print(f"{m.name:45} {m.size:7} cpu {m.stretch_cpu_ms:8.1f} wall {m.stretch_wall_ms:8.1f} share {m.loop_cpu_share:5.2f} canaries {m.canary_count:4} {m.canary_delay_ms:8.1f} lease {m.lease_gap_ms:7.1f} {'' if m.is_settled else 'NOT SETTLED'} rss {m.rss_mib}", flush=True)
    HostileRun(nodes=a.nodes, watch_s=a.watch).run(cases, a.scale, show)
