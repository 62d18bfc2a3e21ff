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

type Render<Kind extends RenderKind> = (
  task: Renderings[Kind]['task'],
) => Renderings[Kind]['result'] | Promise<Renderings[Kind]['result']>;

/** Each library is loaded only in the process that needs it: libvips takes 25 MB, the highlighter 10 MB. */
const LOADERS: { readonly [Kind in RenderKind]: () => Promise<Render<Kind>> } = {
  async text() {
    const { renderText } = await import('../links/web/text.ts');
    return ({ name, text }) => renderText(name, text);
  },
  async table() {
    const { csvPage } = await import('./csv-page.ts');
    return csvPage;
  },
  async thumbnail() {
    const { renderThumbnail } = await import('../thumbnails/render.ts');
    return ({ bytes, wanted }) => renderThumbnail(Buffer.from(bytes), wanted);
  },
};

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
process.on('disconnect', () => process.exit());
// A cast, because `Renderer` starts the process for one kind, and sends it only tasks of that kind.
const render = (await LOADERS[process.argv[2] as RenderKind]()) as (task: unknown) => unknown;
// One task at a time, answered with its result alone. The first message says that the process is ready.
process.on('message', async (task) => process.send?.(await render(task)));
process.send?.('ready');
