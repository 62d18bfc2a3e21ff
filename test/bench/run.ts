/** `npm run bench`: davgate and its peers in one run, interleaved. */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { benchLocally } from './local.ts';
import { benchRemotely } from './remote/bench.ts';

const { values } = parseArgs({
  options: {
    /** `local`: every server on its own disk; `remote`: gateways before the service, slow and limited. */
    group: { type: 'string' },
    only: { type: 'string', default: '' },
  },
});

console.log(`${cpus().length} cores of ${cpus()[0]?.model ?? 'an unknown kind'}, Node ${process.version}\n`);
if (values.group !== 'local') await benchRemotely(values.only);
if (values.group !== 'remote') await benchLocally(values.only);
