// Without this script, times are UTC, addresses have no host, and the calendar is a link to its file.
const format = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit"
})
const day = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC"
})
for (const time of document.querySelectorAll("time")) {
  time.textContent = (time.dateTime.includes("T") ? format : day).format(new Date(time.dateTime))
}
for (const zone of document.querySelectorAll(".zone")) zone.textContent = format.resolvedOptions().timeZone
for (const url of document.querySelectorAll(".url")) url.textContent = new URL(url.textContent, location.href)
for (const link of document.querySelectorAll(".subscribe")) link.href = link.href.replace(/^https?:/, "webcal:")
// How long ago a time was, in the largest unit that fits. A clock that is behind leaves the time.
const units = [["day", 86400], ["hour", 3600], ["minute", 60]]
const words = new Intl.RelativeTimeFormat("en")
const sayAgo = () => {
  for (const ago of document.querySelectorAll(".ago")) {
    const seconds = (Date.now() - new Date(ago.dataset.since)) / 1000
    const [unit, length] = units.find(([, length]) => seconds >= length) ?? ["minute", 60]
    ago.title ||= ago.textContent
    ago.textContent = seconds < 0 ? ago.title : words.format(-Math.floor(seconds / length), unit)
  }
}
sayAgo()
setInterval(sayAgo, 60000)
// A race takes three hours at most. A day ends last where UTC is 12 hours ahead.
const next = document.getElementById("next")
if (next) {
  const hours = next.dataset.start.includes("T") ? 4 : 36
  const isOver = Date.now() > new Date(next.dataset.start).getTime() + hours * 3600000
  if (isOver) next.textContent = "Results pending:"
  document.getElementById("over").hidden = !isOver
}
