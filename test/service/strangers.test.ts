import { once } from 'node:events';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { connectRaw, type RawConnection } from '../support/raw-http.ts';
import { startTestService } from '../support/service.ts';

test('the service keeps a silent connection without a login for 60 s and closes it within 80 s, and keeps one with a login', async () => {
  const clock = new ManualClock();
  const service = await startTestService({ clock, limits: {} });
  const port = Number(new URL(service.url).port);
  const call = (authorization: string, name = 'check/user') =>
    `POST /2/${name} HTTP/1.1\r\nHost: service\r\n${authorization}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;
  const loggedIn = connectRaw(port, call(`Authorization: Bearer ${service.token}\r\n`));
  await loggedIn.until('200 OK');
  const anonymous = connectRaw(port, call(''));
  await anonymous.until('400 Bad Request');
  const wrong = connectRaw(port, call('Authorization: Bearer nonsense\r\n'));
  await wrong.until('401 Unauthorized');
  const uploading = connectRaw(
    port,
    'POST /2/files/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc',
  );
  await uploading.until('400 Bad Request');
  await clock.advance(59_999);
  // Each connection answers once more, with another status than before.
  anonymous.send(call('Authorization: Bearer nonsense\r\n'));
  await anonymous.until('401 Unauthorized');
  wrong.send(call(''));
  await wrong.until('400 Bad Request');
  uploading.send(`the re${call('Authorization: Bearer nonsense\r\n')}`);
  await uploading.until('401 Unauthorized');
  await clock.advance(80_000);
  await Promise.all([anonymous, wrong, uploading].map((connection) => connection.closed()));
  loggedIn.send(call(`Authorization: Bearer ${service.token}\r\n`, 'check/none'));
  await loggedIn.until('400 Bad Request');
  await service.close();
});

test('the service keeps 200 connections of one address, and closes the one silent longest for each more', async () => {
  const service = await startTestService({ limits: {} });
  const port = Number(new URL(service.url).port);
  const connections: RawConnection[] = [];
  for (let count = 0; count < 205; count++) {
    const connection = connectRaw(port);
    await once(connection.socket, 'connect');
    connections.push(connection);
  }
  const closed = () => connections.map(({ socket }) => socket.destroyed);
  await eventually(() => expect(closed().filter(Boolean)).toHaveLength(5));
  expect(closed().slice(0, 5)).toEqual([true, true, true, true, true]);
  const kept = connections.slice(5);
  for (const connection of kept) connection.send('GET /nowhere HTTP/1.1\r\nHost: service\r\n\r\n');
  await Promise.all(kept.map((connection) => connection.until('404 Not Found')));
  for (const { socket } of connections) socket.destroy();
  await service.close();
});
