/** Minimum contrast of text (WCAG 2.2, success criterion 1.4.3). */
export const TEXT_CONTRAST_MIN = 4.5;

/** Whether `text` is a colour like `#1f5fd6`. */
export function isColour(text: string): boolean {
  return /^#[0-9a-f]{6}$/i.test(text);
}

/** Returns the contrast ratio of two colours, from 1 to 21 (WCAG 2.2). */
export function contrastOf(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

/** Returns the least light colour of the hue of `colour` that can be read as text on each of these dark grounds. */
export function lightenedFor(colour: string, grounds: readonly string[]): string {
  for (let percent = 0; percent < 100; percent += 2) {
    const lighter = mixedWithWhite(colour, percent / 100);
    if (grounds.every((ground) => contrastOf(lighter, ground) >= TEXT_CONTRAST_MIN)) return lighter;
  }
  return '#ffffff';
}

/** Returns red, green and blue, each from 0 to 255. */
function channelsOf(colour: string): readonly number[] {
  return [1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16));
}

function mixedWithWhite(colour: string, share: number): string {
  const mixed = channelsOf(colour).map((channel) => Math.round(channel + (255 - channel) * share));
  return `#${mixed.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`;
}

function luminanceOf(colour: string): number {
  const [red = 0, green = 0, blue = 0] = channelsOf(colour).map((channel) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
