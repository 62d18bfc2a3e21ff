/** Number of slots of a Redis cluster. */
const SLOTS = 16_384;

/** Returns the slot of a key in a Redis cluster: the CRC16 (XMODEM) of its hash tag, or of the whole key without one. */
export function slotOf(key: string): number {
  const start = key.indexOf('{');
  const end = start === -1 ? -1 : key.indexOf('}', start + 1);
  const tag = end > start + 1 ? key.slice(start + 1, end) : key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1;
  }
  return crc % SLOTS;
}
