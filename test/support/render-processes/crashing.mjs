/** A render process that exits on a text named `crash`, and answers other texts with its process id. */
process.on('message', ({ name }) => {
  if (name === 'crash') process.exit(1);
  else process.send({ form: 'plain', markup: String(process.pid) });
});
process.send('ready');
