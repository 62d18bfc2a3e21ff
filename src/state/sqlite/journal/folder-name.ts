/** Returns the name of the folder that holds the files of `drive`, which may be called anything. */
export function folderName(drive: string): string {
  return encodeURIComponent(drive).replaceAll('.', '%2E');
}
