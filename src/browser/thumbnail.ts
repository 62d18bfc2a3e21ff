import type { Route } from './route.ts';

/** `thumbnail`: a small image of the revision `rev` of an image file. */
export const thumbnail: Route = {
  method: 'GET',
  async run({ exchange, signal, drive, input }) {
    const image = await drive.files.thumbnail(input.path('path'), input.text('rev'), signal);
    const headers = {
      'Content-Type': 'image/webp',
      // The address names the revision, whose image never changes.
      'Cache-Control': 'private, max-age=31536000, immutable',
      'Content-Security-Policy': 'sandbox',
      'X-Content-Type-Options': 'nosniff',
    };
    await exchange.answer({ status: 200, headers, body: image });
  },
};
