/**
 * The low 32 bits of XXH64 with seed 0: the checksum of a Zstandard frame.
 *
 * 64-bit numbers are two 32-bit halves here, since BigInt takes twenty times as long. The high half of the last result
 * is kept in `high`; everything runs to its end at once, so nobody sees it in between. For little-endian machines.
 */
export function xxh64Low(bytes: Uint8Array): number {
  const { length } = bytes
  const words = wordsOf(bytes)
  const striped = length >>> 5
  let low = striped > 0 ? hashStripes(words, striped * 8) : start(p5h, p5l)
  low = add(high, low, 0, length)
  low = absorbWords(words, striped * 8, length >>> 2, low)
  for (let at = length & ~3; at < length; at += 1) low = absorbByte(bytes[at] as number, low)
  return avalanche(low) >>> 0
}

// Halves of the five primes that the format fixes.
const p1h = 0x9e3779b1 | 0
const p1l = 0x85ebca87 | 0
const p2h = 0xc2b2ae3d | 0
const p2l = 0x27d4eb4f | 0
const p3h = 0x165667b1 | 0
const p3l = 0x9e3779f9 | 0
const p4h = 0x85ebca77 | 0
const p4l = 0xc2b2ae63 | 0
const p5h = 0x27d4eb2f | 0
const p5l = 0x165667c5 | 0

let high = 0
let scratch = new Int32Array(1024)

/** The bytes as 32-bit words, in memory that the next call overwrites. */
function wordsOf(bytes: Uint8Array): Int32Array {
  if (bytes.length > scratch.byteLength) scratch = new Int32Array(Math.ceil(bytes.length / 4) * 2)
  new Uint8Array(scratch.buffer).set(bytes)
  return scratch
}

function hashStripes(words: Int32Array, end: number): number {
  const seed1 = add(p1h, p1l, p2h, p2l)
  const one = runLane(words, 0, end, high, seed1)
  const oneHigh = high
  const two = runLane(words, 2, end, p2h, p2l)
  const twoHigh = high
  const three = runLane(words, 4, end, 0, 0)
  const threeHigh = high
  const four = runLane(words, 6, end, ~p1h, -p1l | 0)
  const fourHigh = high
  let low = rotate(oneHigh, one, 1)
  low = addTurned(low, twoHigh, two, 7)
  low = addTurned(low, threeHigh, three, 12)
  low = addTurned(low, fourHigh, four, 18)
  low = mergeLane(low, oneHigh, one)
  low = mergeLane(low, twoHigh, two)
  low = mergeLane(low, threeHigh, three)
  return mergeLane(low, fourHigh, four)
}

/** A lane takes every fourth 64-bit word. */
function runLane(words: Int32Array, first: number, end: number, seedHigh: number, seedLow: number): number {
  let low = seedLow
  high = seedHigh
  for (let at = first; at < end; at += 8) low = round(high, low, words[at + 1] as number, words[at] as number)
  return low
}

function addTurned(low: number, laneHigh: number, laneLow: number, count: number): number {
  const top = high
  const turned = rotate(laneHigh, laneLow, count)
  return add(top, low, high, turned)
}

function mergeLane(low: number, laneHigh: number, laneLow: number): number {
  const top = high
  const mixed = round(0, 0, laneHigh, laneLow)
  const product = multiply(top ^ high, low ^ mixed, p1h, p1l)
  return add(high, product, p4h, p4l)
}

function absorbWords(words: Int32Array, first: number, end: number, result: number): number {
  let low = result
  let at = first
  for (; at + 2 <= end; at += 2) {
    const top = high
    const mixed = round(0, 0, words[at + 1] as number, words[at] as number)
    low = rotate(top ^ high, low ^ mixed, 27)
    low = multiply(high, low, p1h, p1l)
    low = add(high, low, p4h, p4l)
  }
  if (at === end) return low
  const top = high
  const mixed = multiply(0, words[at] as number, p1h, p1l)
  low = rotate(top ^ high, low ^ mixed, 23)
  low = multiply(high, low, p2h, p2l)
  return add(high, low, p3h, p3l)
}

function absorbByte(byte: number, low: number): number {
  const top = high
  const mixed = multiply(0, byte, p5h, p5l)
  const turned = rotate(top ^ high, low ^ mixed, 11)
  return multiply(high, turned, p1h, p1l)
}

function avalanche(result: number): number {
  let low = result ^ (high >>> 1)
  low = multiply(high, low, p2h, p2l)
  low ^= (high << 3) | (low >>> 29)
  high ^= high >>> 29
  low = multiply(high, low, p3h, p3l)
  return low ^ high
}

function round(accHigh: number, accLow: number, wordHigh: number, wordLow: number): number {
  const product = multiply(wordHigh, wordLow, p2h, p2l)
  const sum = add(high, product, accHigh, accLow)
  const turned = rotate(high, sum, 31)
  return multiply(high, turned, p1h, p1l)
}

function start(toHigh: number, toLow: number): number {
  high = toHigh
  return toLow
}

function add(aHigh: number, aLow: number, bHigh: number, bLow: number): number {
  const low = (aLow + bLow) | 0
  high = (aHigh + bHigh + (low >>> 0 < aLow >>> 0 ? 1 : 0)) | 0
  return low
}

function rotate(aHigh: number, aLow: number, count: number): number {
  high = (aHigh << count) | (aLow >>> (32 - count))
  return (aLow << count) | (aHigh >>> (32 - count))
}

function multiply(aHigh: number, aLow: number, bHigh: number, bLow: number): number {
  const a0 = aLow & 0xffff
  const a1 = aLow >>> 16
  const b0 = bLow & 0xffff
  const b1 = bLow >>> 16
  const middle = a1 * b0 + ((a0 * b0) >>> 16)
  const other = a0 * b1 + (middle & 0xffff)
  const top = a1 * b1 + (middle >>> 16) + (other >>> 16)
  high = (top + Math.imul(aHigh, bLow) + Math.imul(aLow, bHigh)) | 0
  return Math.imul(aLow, bLow)
}
