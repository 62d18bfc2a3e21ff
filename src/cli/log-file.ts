import { appendFileSync, closeSync, openSync } from 'node:fs';
import { ConfigError } from '../config/settings.ts';

/** A file that the log is added to. Its lines name users and files, so a new one is for its owner only. */
export class LogFile {
  private constructor(private readonly descriptor: number) {}

  /** Throws `ConfigError`. */
  static open(file: string): LogFile {
    try {
      return new LogFile(openSync(file, 'a', 0o600));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new ConfigError(
        `--log-file: cannot open ${file} (${code}); make its folder, or change the permissions`,
      );
    }
  }

  /** What a full disk does not take goes to standard error, where somebody may look for the reason. */
  write(lines: string): void {
    try {
      appendFileSync(this.descriptor, lines);
    } catch {
      process.stderr.write(lines);
    }
  }

  close(): void {
    closeSync(this.descriptor);
  }
}
