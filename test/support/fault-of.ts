import { type Fault, FileError } from '../../src/drive/errors.ts';

/** The fault with which `work` fails. Anything but a refusal in a file system's words is thrown on. */
export async function faultOf(work: Promise<unknown>): Promise<Fault | 'none'> {
  try {
    await work;
    return 'none';
  } catch (error) {
    if (error instanceof FileError) return error.fault;
    throw error;
  }
}
