import { useMemo } from 'preact/hooks';
import { encode } from 'uqr';

/** The white frame that readers need around a code, in modules (ISO/IEC 18004). */
const FRAME = 4;

interface Props {
  readonly text: string;
  readonly label: string;
}

/** A QR code of `text`, black on white in every colour scheme. */
export function QrCode({ text, label }: Props) {
  const { size, data } = useMemo(() => encode(text, { border: FRAME }), [text]);
  const squares = data.flatMap((row, y) =>
    row.flatMap((isBlack, x) => (isBlack ? `M${x} ${y}h1v1h-1z` : [])),
  );
  return (
    <svg
      class="qr"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shape-rendering="crispEdges"
    >
      <path fill="#fff" d={`M0 0h${size}v${size}h-${size}z`} />
      <path fill="#000" d={squares.join('')} />
    </svg>
  );
}
