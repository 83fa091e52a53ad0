// Pods that fly from their place in the queue to their node: a hint of what happens, nothing to read.
//
// One canvas above the page that takes no clicks. It draws only while something flies, at most
// DOTS_MAX dots at once, and nothing at all where the system asks for reduced motion.

const DOTS_MAX = 90;
const DURATION_MS = 650;

interface Point {
  x: number;
  y: number;
}

interface Dot {
  from: Point;
  to: Point;
  begin: number;
  side: number; // of the node's cell
}

export class Flow {
  private dots: Dot[] = [];
  private frame = 0;

  // The colour is the canvas's own, so that it follows the theme.
  constructor(private canvas: HTMLCanvasElement) {}

  launch(from: Point, to: Point, side: number, delayMs: number): void {
    if (this.dots.length >= DOTS_MAX) return;
    this.dots.push({ from, to, side, begin: performance.now() + delayMs });
    if (!this.frame) this.frame = requestAnimationFrame(this.step);
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.dots = [];
  }

  private step = (now: number): void => {
    const ratio = devicePixelRatio;
    const width = Math.round(innerWidth * ratio);
    const height = Math.round(innerHeight * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    const context = this.canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, innerWidth, innerHeight);
    context.fillStyle = context.strokeStyle = getComputedStyle(this.canvas).color;
    this.dots = this.dots.filter((dot) => now < dot.begin + DURATION_MS * 1.5);
    for (const dot of this.dots) drawDot(context, dot, (now - dot.begin) / DURATION_MS);
    this.frame = this.dots.length ? requestAnimationFrame(this.step) : 0;
  };
}

function drawDot(context: CanvasRenderingContext2D, dot: Dot, progress: number): void {
  if (progress < 0) return;
  if (progress >= 1) {
    // Arrived: the outline of the cell fades.
    const rest = (progress - 1) / 0.5;
    context.globalAlpha = Math.max(0, 0.9 * (1 - rest));
    context.lineWidth = 2;
    context.strokeRect(dot.to.x - dot.side / 2, dot.to.y - dot.side / 2, dot.side, dot.side);
    context.globalAlpha = 1;
    return;
  }
  const eased = progress < 0.5 ? 2 * progress ** 2 : 1 - (2 - 2 * progress) ** 2 / 2;
  const lift = Math.sin(progress * Math.PI) * 28;
  context.globalAlpha = 0.9;
  context.beginPath();
  context.arc(
    dot.from.x + (dot.to.x - dot.from.x) * eased,
    dot.from.y + (dot.to.y - dot.from.y) * eased - lift,
    3,
    0,
    2 * Math.PI,
  );
  context.fill();
  context.globalAlpha = 1;
}
