import type { TestService } from './service.ts';
import { put, rpc } from './service-client.ts';

/** A new file or folder with its addresses. */
export interface Item {
  readonly path: string;
  readonly id: string;
  readonly rev: string;
}

/** Number in the names of items, always of four digits. */
let made = 1000;

export async function newFile(service: TestService): Promise<Item> {
  const path = `/files/File ${made++}`;
  const { id, rev } = await put(service, path, `bytes of ${path}`);
  return { path, id: String(id), rev: String(rev) };
}

/** A PNG of one red pixel. */
const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC',
  'base64',
);

export async function newImage(service: TestService): Promise<Item> {
  const path = `/images/Image ${made++}.png`;
  const { id, rev } = await put(service, path, DOT);
  return { path, id: String(id), rev: String(rev) };
}

export async function newTable(service: TestService): Promise<Item> {
  const path = `/tables/Table ${made++}.csv`;
  const { id, rev } = await put(service, path, `bytes,of\n${path},\n`);
  return { path, id: String(id), rev: String(rev) };
}

export async function newFolder(service: TestService): Promise<Item> {
  const path = `/Folder ${made++}`;
  const { rev } = await put(service, `${path}/x`, `bytes of ${path}`);
  const answered = await rpc(service, 'files/get_metadata', { path });
  return { path, id: (answered.json as { id: string }).id, rev: String(rev) };
}
