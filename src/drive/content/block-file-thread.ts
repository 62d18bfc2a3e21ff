import { parentPort } from 'node:worker_threads';
import { writeBlockFile } from './block-file.ts';
import type { WriteJob, WriteResult } from './block-thread.ts';

/** Writes the files of the block cache; `block-thread.ts` starts this thread and talks to it. */
function resultOf({ id, ...block }: WriteJob): WriteResult {
  try {
    return { id, fileBytes: writeBlockFile(block) };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException; // the file system's, or our own without a code
    return { id, failure: { message, code } };
  }
}

const port = parentPort;
if (!port) throw new Error('this file runs only as a worker thread');
port.on('message', (job: WriteJob) => port.postMessage(resultOf(job)));
