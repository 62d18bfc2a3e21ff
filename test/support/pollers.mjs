/**
 * A process with many long polls. Gets the URL and groups of cursors from its parent, opens `each` connections
 * for every cursor, and sends the parent the number of answers of each kind by group.
 */
import { connect } from 'node:net';

process.once('message', async ({ url, cursors, each }) => {
  const { hostname, port } = new URL(url);
  /** Number of answers by group: changed, unchanged and failed. */
  const answers = cursors.map(() => ({ changed: 0, unchanged: 0, failed: 0 }));
  const poll = (group) =>
    new Promise((connected, reject) => {
      const body = JSON.stringify({ cursor: cursors[group], timeout: 480 });
      const socket = connect(Number(port), hostname, () => {
        socket.write(
          `POST /2/files/list_folder/longpoll HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
          connected,
        );
      });
      let text = '';
      const done = (kind) => {
        answers[group][kind]++;
        process.send({ answers });
        socket.destroy();
      };
      socket.on('data', (chunk) => {
        text += chunk;
        if (text.endsWith('{"changes":true}')) done('changed');
        else if (text.endsWith('{"changes":false}')) done('unchanged');
        else if (text.includes('\r\n\r\n') && !text.startsWith('HTTP/1.1 200')) done('failed');
      });
      socket.on('error', (error) => {
        process.stderr.write(`a waiting connection broke: ${error.message}\n`);
        reject(error);
      });
      socket.once('end', () => done('failed'));
    });
  // The backlog of a listening socket is a few hundred connections.
  for (let index = 0; index < each; index++)
    for (let start = 0; start < cursors.length; start += 100)
      await Promise.all(cursors.slice(start, start + 100).map((_, offset) => poll(start + offset)));
  process.send({ isOpen: true, answers });
});
