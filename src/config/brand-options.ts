/** The settings of the look of the pages. */
export const BRAND_OPTIONS = [
  {
    name: 'brand-name',
    variable: 'DAVGATE_BRAND_NAME',
    value: 'NAME',
    help: 'name of the drive on the pages in a browser; default: Drive, in the language of the browser',
  },
  {
    name: 'brand-logo',
    variable: 'DAVGATE_BRAND_LOGO',
    value: 'FILE',
    help: 'SVG or PNG file of at most 100 KiB, shown on the sign-in page and as the icon of all pages',
  },
  {
    name: 'brand-colour',
    variable: 'DAVGATE_BRAND_COLOUR',
    value: '#RRGGBB',
    help: 'colour of buttons and links on the pages, dark enough for white text; where the browser is dark, a lighter one of the same hue',
  },
] as const;
