// Numbers as people read them. Units are those of Kubernetes: cores, and bytes by powers of two.

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

function digits(value: number): string {
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  const places = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2;
  return String(Number(value.toFixed(places)));
}

export function bytes(value: number): string {
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < BINARY.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${digits(value)}${BINARY[unit]}`;
}

export function cores(milli: number): string {
  return digits(milli / 1000);
}

export function count(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

export function rate(value: number): string {
  return value >= 1000 ? count(value) : digits(value);
}

export function seconds(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude === 0) return "0 s";
  if (magnitude < 0.001) return `${digits(value * 1e6)} µs`;
  if (magnitude < 1) return `${digits(value * 1e3)} ms`;
  if (magnitude < 90) return `${digits(value)} s`;
  if (magnitude < 5400) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  if (magnitude < 129600) return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} min`;
  return `${digits(value / 86400)} days`;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

// `unit` is what the server says a resource is counted in.
export function amount(value: number, unit: string): string {
  if (unit === "bytes") return bytes(value);
  if (unit === "milli") return cores(value);
  return count(value);
}

const clockParts = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});
const dateParts = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit" });

export function timeOfDay(seconds: number): string {
  return clockParts.format(seconds * 1000);
}

export function dateAndTime(seconds: number): string {
  return `${dateParts.format(seconds * 1000)} ${timeOfDay(seconds)}`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// As kubectl writes ages: the largest unit that says enough.
export function age(value: number): string {
  if (value < 120) return `${Math.max(0, Math.floor(value))}s`;
  if (value < 7200) return `${Math.floor(value / 60)}m`;
  if (value < 172800) return `${Math.floor(value / 3600)}h`;
  return `${Math.floor(value / 86400)}d`;
}
