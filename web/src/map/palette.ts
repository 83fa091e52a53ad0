// One sequential palette, perceptually uniform because it is a straight line in OKLab lightness.
//
// Lightness alone carries the order, so it reads the same for colour-blind people and in print. Empty is
// close to the background and full is far from it, in the light theme and in the dark one.

export type Theme = "light" | "dark";

export const STEPS = 101; // one per percent

interface Range {
  lightness: [number, number];
  chroma: [number, number];
  hue: [number, number]; // degrees; may pass 360
}

const RANGES: Record<Theme, Range> = {
  light: { lightness: [0.955, 0.36], chroma: [0.022, 0.125], hue: [215, 285] },
  dark: { lightness: [0.27, 0.92], chroma: [0.03, 0.15], hue: [265, 105] },
};

function mix([from, to]: [number, number], share: number): number {
  return from + (to - from) * share;
}

function linearRgb(lightness: number, chroma: number, hue: number): [number, number, number] {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short,
  ];
}

// A colour that a screen cannot show loses chroma, never lightness.
function shownRgb(lightness: number, chroma: number, hue: number): [number, number, number] {
  let [low, high] = [0, chroma];
  for (let step = 0; step < 12; step++) {
    // The first step tries all of it.
    const kept = step === 0 ? chroma : (low + high) / 2;
    const isShown = linearRgb(lightness, kept, hue).every((channel) => channel >= 0 && channel <= 1);
    if (isShown) low = kept;
    else high = kept;
  }
  return linearRgb(lightness, low, hue);
}

function encoded(channel: number): number {
  const limited = Math.min(1, Math.max(0, channel));
  const value = limited <= 0.0031308 ? 12.92 * limited : 1.055 * limited ** (1 / 2.4) - 0.055;
  return Math.round(255 * value);
}

export interface Palette {
  fill: string[]; // by percent, 0..100
  ink: string[]; // text that is readable on it
}

function build(theme: Theme): Palette {
  const range = RANGES[theme];
  const palette: Palette = { fill: [], ink: [] };
  for (let step = 0; step < STEPS; step++) {
    const share = step / (STEPS - 1);
    const rgb = shownRgb(mix(range.lightness, share), mix(range.chroma, share), mix(range.hue, share));
    const [red, green, blue] = rgb.map(encoded);
    palette.fill.push(`rgb(${red},${green},${blue})`);
    const luminance = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
    // Where black and white have the same contrast (WCAG): (L + 0.05)² = 1.05 · 0.05.
    palette.ink.push(luminance > 0.179 ? "#000000" : "#ffffff");
  }
  return palette;
}

const built = new Map<Theme, Palette>();

export function paletteOf(theme: Theme): Palette {
  let palette = built.get(theme);
  if (!palette) built.set(theme, (palette = build(theme)));
  return palette;
}
