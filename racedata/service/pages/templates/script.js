// Without this script, times are UTC, addresses have no host, and the calendar is a link to its file.
const format = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit"
})
const day = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC"
})
const ofSeason = { weekday: "short", day: "numeric", month: "short" }
const dayOfSeason = new Intl.DateTimeFormat(undefined, { ...ofSeason, timeZone: "UTC" })
const formatOfSeason = new Intl.DateTimeFormat(undefined, { ...ofSeason, hour: "2-digit", minute: "2-digit" })
// A race takes three hours at most. Some that have no result yet may be over.
const isOver = ({ dataset: { start } }, hours = start.includes("T") ? 4 : 36) =>
  Date.now() > new Date(start).getTime() + hours * 3600000
// Three days after a race without a result, the weekend that is next by the clock replaces it.
const next = document.getElementById("next")
if (next) {
  const weekends = [...document.querySelectorAll("template.weekend")]
  const isOld = isOver(next, 72)
  const pending = [next, ...weekends].filter((weekend) => isOver(weekend))
  const shown = isOld && weekends.find((weekend) => !isOver(weekend))
  document.getElementById("over").hidden = !pending.length
  document.getElementById("missing").textContent = pending.length === 1
    ? "The result of the last race is not loaded yet." : `The results of the last ${pending.length} races are not loaded yet.`
  if (shown) {
    const [head, sessions] = shown.content.children
    document.getElementById("head").replaceChildren(...head.childNodes)
    document.getElementById("sessions").replaceChildren(...sessions.childNodes)
  }
  const after = document.getElementById("after")
  if (after) after.hidden = isOld
  const named = document.getElementById("next")
  if (isOver(named)) named.textContent = "Results pending:"
}
for (const time of document.querySelectorAll("time")) {
  const [date, dateAndTime] = time.closest(".calendar") ? [dayOfSeason, formatOfSeason] : [day, format]
  const form = time.dateTime.includes("T") ? dateAndTime : date
  time.textContent = form.format(new Date(time.dateTime))
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
// The session that runs or comes, and in how long it begins. A day without a time ends last where UTC is 12 hours ahead.
const plural = (count, unit) => `${count} ${unit}${count === 1 ? "" : "s"}`
const inWords = (minutes) => {
  const [days, hours] = [Math.floor(minutes / 1440), Math.floor(minutes / 60) % 24]
  if (days > 1) return plural(days, "day")
  if (days) return hours ? `1 day ${plural(hours, "hour")}` : "1 day"
  return [hours && plural(hours, "hour"), (minutes % 60 || !hours) && plural(minutes % 60, "minute")].filter(Boolean).join(" ")
}
const upcoming = document.getElementById("upcoming")
const saySession = () => {
  const rows = [...document.querySelectorAll(".sessions tr[data-start]")]
  const minutesTo = (row) => (new Date(row.dataset.start) - Date.now()) / 60000
  const isTimed = (row) => row.dataset.start.includes("T")
  const next = rows.find((row) => minutesTo(row) > -(isTimed(row) ? Number(row.dataset.minutes) : 2160))
  for (const row of rows) row.classList.toggle("next", row === next)
  upcoming.hidden = !next
  if (!next) return
  const [name, start] = [next.cells[0].textContent, next.cells[1].textContent]
  const minutes = Math.ceil(minutesTo(next))
  upcoming.textContent = !isTimed(next) ? `${name}: ${start}`
    : minutes > 0 ? `${name} in ${inWords(minutes)}: ${start}` : `${name} is on`
}
if (upcoming) {
  saySession()
  setInterval(saySession, 30000)
}
// On a narrow screen, long tables are folded until they are asked for, such as by a link.
const folded = matchMedia("(max-width: 30rem)").matches ? document.querySelectorAll(".fold") : []
const unfold = () => {
  const asked = document.getElementById(location.hash.slice(1))
  for (const fold of folded) if (asked && [fold, fold.previousElementSibling].includes(asked)) fold.open = true
}
for (const fold of folded) fold.open = false
unfold()
addEventListener("hashchange", unfold)
// For three days after a race, its result comes before the next weekend.
const newest = document.getElementById("newest")
if (newest && Date.now() - new Date(newest.dataset.date) < 4 * 86400000) newest.parentNode.prepend(newest)
for (const coming of document.querySelectorAll(".coming")) {
  const first = [...coming.children].find((race) => !isOver(race))
  for (const race of coming.children) race.hidden = race !== first
}
const tags = [...document.querySelectorAll(".tag[data-start]")]
const nextTag = tags.find((tag) => !isOver(tag)) ?? tags[0]
for (const tag of tags) {
  if (isOver(tag)) tag.textContent = "Results pending"
  tag.hidden = !isOver(tag) && tag !== nextTag
  tag.closest("tr").classList.toggle("next", tag === nextTag)
}
