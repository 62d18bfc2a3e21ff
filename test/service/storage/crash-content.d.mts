export function contentOf(label: string): Buffer;
export function randomOf(seed: number): (bound: number) => number;
