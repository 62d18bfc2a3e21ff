let count = 0;

/** A render process whose thumbnails have as many MiB as the number in the image says; each byte is the number of the task. */
process.on('message', ({ bytes }) => {
  count += 1;
  process.send(new Uint8Array(Number(new TextDecoder().decode(bytes)) * 1024 * 1024).fill(count));
});
process.send('ready');
