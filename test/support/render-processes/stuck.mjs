/** A render process that never answers. */
process.on('message', () => undefined);
process.send('ready');
