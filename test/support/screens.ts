import { combinations } from './effort.ts';

/** Widths in px and colours at which the web application must fit and axe must find nothing. */
export const SCREENS = combinations([
  { width: 320, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
  { width: 1280, colorScheme: 'light' },
  { width: 1280, colorScheme: 'dark' },
] as const);
