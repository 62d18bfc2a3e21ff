/**
 * Resolves at the first SIGTERM or SIGINT. A second one ends the process at once: whoever sends it does not
 * want to wait for the drain, and all that was acknowledged is safe by then.
 */
export function untilAskedToStop(): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      resolve();
      for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => process.exit(1));
    };
    process.once('SIGTERM', stop);
    process.once('SIGINT', stop);
  });
}
