import { Daemons, diskDirectory } from './daemons.ts';
import { freePort } from './free-port.ts';
import { suspend } from './launched.ts';
import { requestObject } from './signed-s3.ts';

/** What a client of S3 needs for a bucket. */
export interface Bucket {
  /** The endpoint, without a slash at the end. The bucket is in the path. */
  readonly url: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKey: string;
  readonly secretKey: string;
}

/** A real server of S3 with an empty bucket. */
export interface TestObjectStore extends Bucket {
  /** Suspends the server like a hanging machine: connections are accepted and never answered. */
  pause(): void;
  resume(): void;
  /** Kills all its daemons with SIGKILL, like a crash. */
  stop(): Promise<void>;
  /** Starts the server again on the same port and objects. */
  start(): Promise<void>;
  /** Stops the server and removes its files. */
  close(): Promise<void>;
}

/** How one implementation of S3 is run. */
export interface Kind {
  readonly name: string;
  /** The access key of the user. */
  readonly accessKey: string;
  /** The program that clients connect to. */
  readonly front: string;
  /** Writes what the daemons find at their first start. `port` is that of the endpoint. */
  prepare(directory: string, port: number, secretKey: string): Promise<Setup>;
}

/** A server whose files are prepared. */
export interface Setup {
  /** Starts the daemons. Resolves when they answer. */
  launch(daemons: Daemons): Promise<void>;
  /** Makes the user, where the configuration does not name it. */
  createUser?(): Promise<void>;
}

const SECRET_KEY = 'secret-of-the-tests';

/** Starts a server of this kind in a directory of its own. Resolves when its bucket is there. */
export async function startObjectStore(kind: Kind): Promise<TestObjectStore> {
  const directory = await diskDirectory(kind.name);
  const daemons = new Daemons(directory);
  try {
    const port = await freePort();
    const setup = await kind.prepare(directory, port, SECRET_KEY);
    const bucket: Bucket = {
      url: `http://127.0.0.1:${port}`,
      bucket: 'blocks',
      region: 'us-east-1',
      accessKey: kind.accessKey,
      secretKey: SECRET_KEY,
    };
    await setup.launch(daemons);
    await setup.createUser?.();
    await createBucket(bucket);
    return {
      ...bucket,
      pause: () => suspend(daemons.get(kind.front)),
      resume: () => void daemons.get(kind.front).kill('SIGCONT'),
      stop: () => daemons.kill(),
      start: () => setup.launch(daemons),
      close: () => daemons.close(),
    };
  } catch (error) {
    await daemons.close();
    throw error;
  }
}

async function createBucket(bucket: Bucket): Promise<void> {
  const { status, text } = await requestObject(bucket, { method: 'PUT' });
  if (status !== 200) throw new Error(`the bucket was not created: ${status} ${text()}`);
}
