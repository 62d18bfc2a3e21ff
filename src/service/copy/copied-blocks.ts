import { randomBytes } from 'node:crypto';
import { type BlockPlace, hashIn } from '../storage/blocks/block-place.ts';
import type { IncomingFiles } from '../storage/blocks/incoming-files.ts';
import { CopyError } from './copy-error.ts';
import type { OuterBlock } from './sides.ts';

/** Bytes of what tells a copy from others. */
const COPY_ID_BYTES = 8;

export function newCopyId(): string {
  return randomBytes(COPY_ID_BYTES).toString('hex');
}

/**
 * The blocks of a target. Where names are used once, those of a copy are its own: a later attempt finds what earlier ones have
 * stored.
 */
export class CopiedBlocks {
  readonly #names = new Set<string>();

  constructor(
    private readonly place: BlockPlace,
    private readonly incoming: IncomingFiles,
    /** What names end with; `undefined` where a name is the hash alone. */
    private readonly copyId: string | undefined,
  ) {}

  /** Finds the blocks that are there. Throws `CopyError` if others are among them. */
  async find(): Promise<void> {
    for await (const name of this.place.names()) {
      const hash = hashIn(name);
      if (hash === undefined) continue;
      if (name !== this.#nameFor(hash))
        throw new CopyError(
          'the place for the blocks of the copy has blocks of this service already: name another bucket or folder, or remove them there',
        );
      this.#names.add(name);
    }
  }

  has({ hash }: OuterBlock): boolean {
    return this.#names.has(this.#nameFor(hash.toString('hex')));
  }

  /** Stores a block, whose bytes have been verified. */
  async keep({ hash }: OuterBlock, bytes: Buffer): Promise<void> {
    const name = this.#nameFor(hash.toString('hex'));
    const file = await this.incoming.create();
    try {
      await file.file.append([bytes]);
      await this.place.keep(name, file);
    } catch (failure) {
      await this.incoming.drop(file);
      throw failure;
    }
    this.#names.add(name);
  }

  /** Makes the stored blocks durable. */
  async sync(): Promise<void> {
    await this.place.sync();
  }

  /** Returns the name in a row; `undefined` for a block that is named by its hash. Throws `CopyError` if it is not there. */
  nameOf(hash: Buffer): string | undefined {
    const name = this.#nameFor(hash.toString('hex'));
    if (!this.#names.has(name))
      throw new CopyError(
        'the source has changed while it was copied: stop its services and start the copy again',
      );
    return this.copyId === undefined ? undefined : name;
  }

  #nameFor(hash: string): string {
    return this.copyId === undefined ? hash : `${hash}-${this.copyId}`;
  }
}
