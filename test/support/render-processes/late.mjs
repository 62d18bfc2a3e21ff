import { existsSync } from 'node:fs';

/** A render process that has loaded what it needs when there is a file `go` beside it, and answers as `crashing.mjs`. */
process.on('message', () => process.send({ form: 'plain', markup: String(process.pid) }));
const starting = setInterval(() => {
  if (!existsSync(new URL('go', import.meta.url))) return;
  clearInterval(starting);
  process.send('ready');
}, 10);
