/** A render process that a text called `crash` ends; it answers the other texts with its process id. */
process.on('message', ({ task }) => {
  if (task.name === 'crash') process.exit(1);
  else process.send({ form: 'plain', markup: String(process.pid) });
});
