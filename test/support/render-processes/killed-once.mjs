import { existsSync, renameSync, writeFileSync } from 'node:fs';

const file = new URL('pid', import.meta.url);

/** A render process that writes its id beside it and hangs, unless another has done that: then it answers as `crashing.mjs`. */
process.on('message', () => {
  if (existsSync(file)) return process.send({ form: 'plain', markup: String(process.pid) });
  const written = new URL('written', import.meta.url);
  writeFileSync(written, String(process.pid));
  renameSync(written, file);
});
process.send('ready');
