/** Returns the name of the folder with the files of `drive`, whose name may have any characters. */
export function folderName(drive: string): string {
  return encodeURIComponent(drive).replaceAll('.', '%2E');
}
