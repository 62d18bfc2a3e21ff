/**
 * A render process that exits on a text named `crash`, ends on a text named `kill` as if the system had killed it, and answers
 * other texts with its process id.
 */
process.on('message', ({ name }) => {
  if (name === 'crash') process.exit(1);
  if (name === 'kill') process.kill(process.pid, 'SIGKILL');
  else process.send({ form: 'plain', markup: String(process.pid) });
});
process.send('ready');
