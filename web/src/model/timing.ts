// How long the page takes, as measures of the browser: `kubestow:first` from the start of loading to the
// first picture of the nodes, `kubestow:update` from a batch of the stream to the picture with it.

let receivedAt = 0;

export function received(): void {
  receivedAt ||= performance.now();
}

export function drawn(): void {
  if (performance.getEntriesByName("kubestow:first").length === 0) {
    performance.measure("kubestow:first", { start: 0, end: performance.now() });
  } else if (receivedAt) {
    performance.clearMeasures("kubestow:update"); // only the last one is kept
    performance.measure("kubestow:update", { start: receivedAt, end: performance.now() });
  }
  receivedAt = 0;
}
