import { type Fault, FileError } from '../../src/drive/errors.ts';

/** Returns the fault with which `work` fails, or `none`. Rethrows other errors. */
export async function faultOf(work: Promise<unknown>): Promise<Fault | 'none'> {
  try {
    await work;
    return 'none';
  } catch (error) {
    if (error instanceof FileError) return error.fault;
    throw error;
  }
}
