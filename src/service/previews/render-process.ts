import { writeFileSync } from 'node:fs';
import type { Html } from '../../util/html.ts';
import type { RenderedText } from '../links/web/text.ts';
import type { NoThumbnail, Wanted } from '../thumbnails/render.ts';

/** The tasks of the process, by kind. */
export interface Renderings {
  readonly text: {
    readonly task: { readonly name: string; readonly text: string };
    readonly result: RenderedText;
  };
  readonly table: {
    /** CSV. */
    readonly task: { readonly name: string; readonly text: string; readonly isCut: boolean };
    /** A whole page. */
    readonly result: Html;
  };
  readonly thumbnail: {
    readonly task: { readonly bytes: Uint8Array; readonly wanted: Wanted };
    readonly result: Uint8Array | NoThumbnail;
  };
}

export type RenderKind = keyof Renderings;

/** A message to the process. It handles one task at a time, and answers with the result alone. */
export type RenderRequest = {
  [Kind in RenderKind]: { readonly kind: Kind; readonly task: Renderings[Kind]['task'] };
}[RenderKind];

async function render(request: RenderRequest): Promise<Renderings[RenderKind]['result']> {
  // Each library is loaded only in the process that needs it: libvips takes 25 MB, the highlighter 10 MB.
  if (request.kind === 'thumbnail') {
    const { renderThumbnail } = await import('../thumbnails/render.ts');
    return renderThumbnail(Buffer.from(request.task.bytes), request.task.wanted);
  }
  if (request.kind === 'table') {
    const { csvPage } = await import('./csv-page.ts');
    return csvPage(request.task);
  }
  const { renderText } = await import('../links/web/text.ts');
  return renderText(request.task.name, request.task.text);
}

/** Makes Linux end this process first when the machine runs out of memory. */
function volunteerForOutOfMemory(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {
    // Other systems have no such file.
  }
}

volunteerForOutOfMemory();
// A terminal and a service manager send signals to the whole group; the service ends this process when it ends itself.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
process.on('message', async (request: RenderRequest) => process.send?.(await render(request)));
process.on('disconnect', () => process.exit());
