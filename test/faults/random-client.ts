import { type GatewayAnswer, GatewayClient, type GatewayRequest } from '../support/gateway.ts';
import { parseMultistatus } from '../support/multistatus.ts';
import type { TestService } from '../support/service.ts';
import { bytesOf, type Content, contentOf, isWithin, TreeModel } from './tree-model.ts';
import { isSame, storedTree, type Tree } from './upstream-truth.ts';

/** Number of names in a folder: few, so that operations meet on the same name. */
const NAMES = 5;
const DEPTH_MAX = 3;
/** Prefix of the names to which the gateway moves an entry while it is being replaced. */
const REPLACED_PREFIX = '/.davgate-waiting-';
const SMALL_BYTES_MAX = 20_000;
/** More than one block, so that uploads go by sessions and downloads in pieces. */
const LARGE_BYTES = { from: 4 * 1024 ** 2 - 1, to: 10 * 1024 ** 2 };

export interface ClientOptions {
  readonly service: TestService;
  readonly url: string;
  /** Folder that no other client uses. */
  readonly folder: string;
  readonly random: () => number;
  /** Parts of large files cannot be checked against the hash of the whole. */
  readonly readsPartsOfLarge: boolean;
}

/** A request, and its expected status and tree afterwards. */
interface Change {
  readonly method: string;
  readonly path: string;
  readonly request?: GatewayRequest;
  readonly status: number;
  readonly after: TreeModel;
}

/**
 * A client that does random operations in a folder of its own. It throws when an answer is wrong, or when an operation
 * left the wrong tree at the service.
 */
export class RandomClient {
  readonly #client: GatewayClient;
  #tree = new TreeModel();
  /** Number of operations by name. */
  readonly counts = new Map<string, number>();
  /** Number of requests that failed or were answered with 5xx. */
  failures = 0;
  #operation = '';

  constructor(private readonly options: ClientOptions) {
    this.#client = new GatewayClient(options.url);
  }

  get tree(): TreeModel {
    return this.#tree;
  }

  close(): void {
    this.#client.close();
  }

  /** Makes the client's folder. */
  async makeFolder(): Promise<void> {
    const { folder } = this.options;
    for (;;) {
      const { status } = await this.#client.send('MKCOL', folder);
      // 405: an earlier try made the folder although it was answered with an error.
      if (status === 201 || status === 405) return;
      if (status < 500) throw new Error(`MKCOL ${folder}: ${status}`);
    }
  }

  async step(): Promise<void> {
    const [name, operate] = this.#choose(OPERATIONS);
    this.#operation = name;
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    await operate.call(this);
  }

  /** Compares the expected tree and contents with those that the gateway shows. */
  async compareAll(): Promise<void> {
    const shown = await this.#shown(this.options.folder, 'infinity');
    const expected = this.#tree.sizes();
    if (!shown || !isSame(shown, expected))
      throw this.#mismatch(`PROPFIND of all: ${difference(shown ?? {}, expected)}`);
    for (const path of this.#tree.paths('file')) {
      const { status, body } = await this.#client.send('GET', path);
      if (status !== 200 || !body.equals(bytesOf(this.#contentAt(path))))
        throw this.#mismatch(`GET ${path}: ${status} with ${body.length} bytes`);
    }
  }

  async put(): Promise<void> {
    const path = this.#newPath();
    const content = this.#newContent();
    await this.#change(this.#putOf(path, content));
  }

  async putLarge(): Promise<void> {
    const sizeBytes = this.#number(LARGE_BYTES.from, LARGE_BYTES.to);
    await this.#change(this.#putOf(this.#newPath(), contentOf(this.#number(1, 2 ** 31), sizeBytes)));
  }

  /** Sends a PUT and disconnects in the middle of its body, which must change nothing. */
  async putAndLeave(): Promise<void> {
    const path = this.#newPath();
    const body = bytesOf(this.#newContent());
    const leaveAfterBytes = this.#number(0, Math.max(1, body.length - 1));
    await this.#client.send('PUT', path, { body, leaveAfterBytes }).catch(() => undefined);
  }

  async putIfMatch(): Promise<void> {
    const path = this.#existing('file');
    if (!path) return;
    const head = await this.#read('HEAD', path);
    if (!head) return;
    const isRight = this.options.random() < 0.6;
    const etag = isRight ? String(head.headers.etag) : '"0123456789abcdef"';
    const put = this.#putOf(path, this.#newContent());
    const request = { ...put.request, headers: { 'if-match': etag } };
    await this.#change({ ...put, request, ...(!isRight && { status: 412, after: this.#tree }) });
  }

  async putIfNoneMatch(): Promise<void> {
    const path = this.#newPath();
    const put = this.#putOf(path, this.#newContent());
    const isFile = typeof this.#tree.nodes.get(path) === 'object';
    const request = { ...put.request, headers: { 'if-none-match': '*' } };
    await this.#change({ ...put, request, ...(isFile && { status: 412, after: this.#tree }) });
  }

  async get(): Promise<void> {
    const path = this.#existing('file');
    const answer = path && (await this.#read('GET', path));
    if (!answer) return;
    const expected = bytesOf(this.#contentAt(path));
    if (answer.status !== 200 || !answer.body.equals(expected))
      throw this.#mismatch(
        `GET ${path}: ${answer.status}, ${answer.body.length} of ${expected.length} bytes`,
      );
  }

  async getRange(): Promise<void> {
    const path = this.#existing('file');
    if (!path) return;
    const content = this.#contentAt(path);
    if (content.sizeBytes === 0) return;
    if (content.sizeBytes > 4 * 1024 ** 2 && !this.options.readsPartsOfLarge) return;
    const start = this.#number(0, content.sizeBytes - 1);
    const end = this.#number(start + 1, content.sizeBytes);
    const answer = await this.#read('GET', path, { headers: { range: `bytes=${start}-${end - 1}` } });
    if (!answer) return;
    if (answer.status !== 206 || !answer.body.equals(bytesOf(content).subarray(start, end)))
      throw this.#mismatch(`GET ${path} ${start}-${end}: ${answer.status}, ${answer.body.length} bytes`);
  }

  async getMissing(): Promise<void> {
    const path = `${this.#folder()}/never-there-${this.#number(0, 9)}`;
    const answer = await this.#read('GET', path);
    if (answer && answer.status !== 404) throw this.#mismatch(`GET ${path}: ${answer.status}`);
  }

  async propfind(): Promise<void> {
    const folder = this.#folder();
    const shown = await this.#shown(folder, '1');
    if (!shown) return;
    const children = new Set(this.#tree.childrenOf(folder));
    const expected = Object.fromEntries(
      Object.entries(this.#tree.sizes()).filter(([path]) => children.has(path)),
    );
    if (!isSame(shown, expected)) throw this.#mismatch(`PROPFIND ${folder}: ${difference(shown, expected)}`);
  }

  async mkcol(): Promise<void> {
    const parent = this.#folder();
    if (depthOf(parent) >= DEPTH_MAX) return;
    const path = `${parent}/d${this.#number(0, NAMES)}`;
    const isThere = this.#tree.nodes.has(path);
    const after = isThere ? this.#tree : this.#tree.with(path, 'folder');
    await this.#change({ method: 'MKCOL', path, status: isThere ? 405 : 201, after });
  }

  async delete(): Promise<void> {
    const path = this.#existing(this.options.random() < 0.7 ? 'file' : 'folder');
    if (path) await this.#change({ method: 'DELETE', path, status: 204, after: this.#tree.without(path) });
  }

  async move(): Promise<void> {
    await this.#relocate('MOVE', (from, to) => this.#tree.moved(from, to));
  }

  async copy(): Promise<void> {
    await this.#relocate('COPY', (from, to) => this.#tree.copied(from, to));
  }

  async #relocate(method: string, after: (from: string, to: string) => TreeModel): Promise<void> {
    const kind = this.options.random() < 0.7 ? 'file' : 'folder';
    const from = this.#existing(kind);
    if (!from) return;
    // Onto an existing entry, or to a new path.
    const onto =
      this.options.random() < 0.5 && this.#existing(this.options.random() < 0.7 ? 'file' : 'folder');
    const to = onto || (kind === 'file' ? this.#newPath() : `${this.#folder()}/d${this.#number(0, NAMES)}`);
    if (isWithin(from, to) || isWithin(to, from)) return;
    if (kind === 'folder' && depthOf(to) > DEPTH_MAX) return;
    const isThere = this.#tree.nodes.has(to);
    const overwrite = this.options.random() < 0.8;
    const isRefused = isThere && !overwrite;
    await this.#change({
      method,
      path: from,
      request: {
        headers: { destination: this.options.url + encodeURI(to), overwrite: overwrite ? 'T' : 'F' },
      },
      status: isRefused ? 412 : isThere ? 204 : 201,
      after: isRefused ? this.#tree : after(from, to),
    });
  }

  #putOf(path: string, content: Content): Change {
    const there = this.#tree.nodes.get(path);
    const put = { method: 'PUT', path, request: { body: bytesOf(content) } };
    if (there === 'folder') return { ...put, status: 405, after: this.#tree };
    return { ...put, status: there ? 204 : 201, after: this.#tree.with(path, content) };
  }

  /** Sends the request and checks its status. After a failure the change must be done wholly or not at all. */
  async #change({ method, path, request, status, after }: Change): Promise<void> {
    const answer = await this.#client.send(method, path, request).catch((error: Error) => error);
    const what = `${method} ${path} ${JSON.stringify(request?.headers ?? {})}`;
    if (!(answer instanceof Error) && answer.status === status) {
      this.#tree = after;
      return;
    }
    if (!isFailure(answer)) throw this.#mismatch(`${what}: ${describeAnswer(answer)} and not ${status}`);
    this.failures += 1;
    await this.#checkAfterFailure(after, `${what}: ${describeAnswer(answer)}`);
  }

  /** Checks that a failed change is shown wholly or not at all, and that the service has the tree that is shown. */
  async #checkAfterFailure(after: TreeModel, what: string): Promise<void> {
    const { service, folder } = this.options;
    let shown = await this.#shown(folder, 'infinity');
    while (!shown) shown = await this.#shown(folder, 'infinity');
    const shownTree = shown;
    const tree = [after, this.#tree].find((one) => isSame(shownTree, one.sizes()));
    if (!tree) throw this.#mismatch(`${what} shows ${difference(shown, this.#tree.sizes(), after.sizes())}`);
    const stored = await storedTree(service, folder);
    // An entry that was replaced and is not removed yet is not shown to clients.
    for (const path of Object.keys(stored)) if (path.includes(REPLACED_PREFIX)) delete stored[path];
    if (!isSame(stored, tree.digest()))
      throw this.#mismatch(`${what} left ${difference(stored, this.#tree.digest(), after.digest())}`);
    this.#tree = tree;
  }

  /** Sends a request that changes nothing; returns `undefined` when it fails. */
  async #read(method: string, path: string, request?: GatewayRequest): Promise<GatewayAnswer | undefined> {
    const answer = await this.#client.send(method, path, request).catch((error: Error) => error);
    if (!isFailure(answer)) return answer as GatewayAnswer;
    this.failures += 1;
    return undefined;
  }

  /** Returns the size, or `folder`, of each entry below `folder`, by path; `undefined` when the request fails. */
  async #shown(folder: string, depth: string): Promise<Tree | undefined> {
    const answer = await this.#read('PROPFIND', folder, { headers: { depth } });
    if (!answer) return undefined;
    if (answer.status !== 207) throw this.#mismatch(`PROPFIND ${folder}: ${describeAnswer(answer)}`);
    const shown: Record<string, string | number> = {};
    for (const { href, properties } of await parseMultistatus(answer.body.toString())) {
      const path = decodeURI(href).replace(/\/$/, '');
      const length = properties.get('{DAV:}getcontentlength')?.text;
      if (path !== folder) shown[path] = href.endsWith('/') ? 'folder' : Number(length);
    }
    return shown;
  }

  #mismatch(what: string): Error {
    const { folder } = this.options;
    return new Error(
      `${folder}, operation ${[...this.counts.values()].reduce((a, b) => a + b, 0)} (${this.#operation}): ${what}`,
    );
  }

  #contentAt(path: string): Content {
    const node = this.#tree.nodes.get(path);
    if (typeof node !== 'object') throw new Error(`the test expects no file at ${path}`);
    return node;
  }

  #newContent(): Content {
    return contentOf(this.#number(1, 2 ** 31), this.#number(0, SMALL_BYTES_MAX));
  }

  /** Returns the path of a file that may exist. */
  #newPath(): string {
    return `${this.#folder()}/f${this.#number(0, NAMES)}.txt`;
  }

  #folder(): string {
    const folders = [this.options.folder, ...this.#tree.paths('folder')];
    return folders[this.#number(0, folders.length)] ?? this.options.folder;
  }

  #existing(kind: 'file' | 'folder'): string | undefined {
    const paths = this.#tree.paths(kind);
    return paths[this.#number(0, paths.length)];
  }

  /** Returns a random integer from `from` to below `end`. */
  #number(from: number, end: number): number {
    return from + Math.floor(this.options.random() * (end - from));
  }

  #choose(operations: readonly (readonly [number, string, Operation])[]): readonly [string, Operation] {
    const total = operations.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.options.random() * total;
    for (const [weight, name, operate] of operations) {
      left -= weight;
      if (left < 0) return [name, operate];
    }
    throw new Error('no operation to choose');
  }
}

type Operation = (this: RandomClient) => Promise<void>;

/** The operations with their weights. */
const OPERATIONS: readonly (readonly [number, string, Operation])[] = [
  [20, 'put', RandomClient.prototype.put],
  [4, 'putLarge', RandomClient.prototype.putLarge],
  [3, 'putAndLeave', RandomClient.prototype.putAndLeave],
  [6, 'putIfMatch', RandomClient.prototype.putIfMatch],
  [6, 'putIfNoneMatch', RandomClient.prototype.putIfNoneMatch],
  [14, 'get', RandomClient.prototype.get],
  [10, 'getRange', RandomClient.prototype.getRange],
  [4, 'getMissing', RandomClient.prototype.getMissing],
  [12, 'propfind', RandomClient.prototype.propfind],
  [10, 'mkcol', RandomClient.prototype.mkcol],
  [8, 'delete', RandomClient.prototype.delete],
  [10, 'move', RandomClient.prototype.move],
  [8, 'copy', RandomClient.prototype.copy],
];

function isFailure(answer: GatewayAnswer | Error): boolean {
  return answer instanceof Error || answer.status >= 500;
}

function describeAnswer(answer: GatewayAnswer | Error): string {
  return answer instanceof Error
    ? String(answer)
    : `${answer.status} ${answer.body.toString().slice(0, 300)}`;
}

function depthOf(path: string): number {
  return path.split('/').length - 1;
}

/** Describes the paths at which `found` differs from one of `expected`. */
function difference(found: Tree, ...expected: readonly Tree[]): string {
  const paths = new Set([found, ...expected].flatMap((tree) => Object.keys(tree)));
  return [...paths]
    .filter((path) => expected.some((tree) => tree[path] !== found[path]))
    .map((path) => `${path}: ${found[path]} and not ${expected.map((tree) => tree[path]).join(' or ')}`)
    .join('; ');
}
