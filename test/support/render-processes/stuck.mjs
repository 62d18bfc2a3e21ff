/** A render process that takes every task and never answers. */
process.on('message', () => undefined);
