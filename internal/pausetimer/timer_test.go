package pausetimer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-mcp/parley/internal/pausetimer"
)

// An expiry notes when its Timer expired and by which limit.
type expiry struct {
	begun time.Time
	at    chan string
}

func (e *expiry) Expired(l pausetimer.Limit) {
	name := map[pausetimer.Limit]string{pausetimer.Idle: "idle", pausetimer.Hard: "hard"}[l]
	e.at <- fmt.Sprint(name, " after ", time.Since(e.begun))
}

// got is what happened, or "nothing".
func (e *expiry) got() string {
	synctest.Wait()
	select {
	case got := <-e.at:
		return got
	default:
		return "nothing"
	}
}

func start(s *pausetimer.Scheduler, idle, hard time.Duration) (*pausetimer.Timer, *expiry) {
	t, e := new(pausetimer.Timer), &expiry{time.Now(), make(chan string, 2)}
	t.Start(s, e, idle, hard)
	return t, e
}

const (
	none    = time.Duration(-1)
	endless = time.Duration(math.MaxInt64)
	decade  = 10 * 365 * 24 * time.Hour
)

func TestTimer(t *testing.T) {
	sleep := func(d time.Duration) func(*pausetimer.Timer) {
		return func(*pausetimer.Timer) { time.Sleep(d) }
	}
	progress, pause, resume := (*pausetimer.Timer).Progress, (*pausetimer.Timer).Pause, (*pausetimer.Timer).Resume
	allowIdle := (*pausetimer.Timer).AllowIdle
	type steps = []func(*pausetimer.Timer)
	for name, test := range map[string]struct {
		idle, hard time.Duration
		steps      steps
		want       string
	}{
		"idle":                    {time.Minute, time.Hour, nil, "idle after 1m0s"},
		"idle alone":              {time.Minute, none, nil, "idle after 1m0s"},
		"hard":                    {time.Hour, time.Minute, nil, "hard after 1m0s"},
		"hard alone":              {none, time.Minute, nil, "hard after 1m0s"},
		"both at once":            {time.Minute, time.Minute, nil, "hard after 1m0s"},
		"none":                    {none, none, steps{progress, pause, resume, resume}, "nothing"},
		"lowest":                  {math.MinInt64, math.MinInt64, nil, "nothing"},
		"endless":                 {endless, endless, steps{sleep(time.Second), progress, pause, sleep(time.Second), resume}, "nothing"},
		"endless idle":            {endless, time.Minute, steps{sleep(time.Second), progress}, "hard after 1m0s"},
		"endless hard":            {time.Minute, endless, steps{pause, sleep(time.Second), resume}, "idle after 1m1s"},
		"one less than endless":   {endless - 1, endless - 1, steps{sleep(time.Second), progress, pause, sleep(time.Second), resume}, "nothing"},
		"zero":                    {0, time.Minute, nil, "idle after 0s"},
		"zero hard":               {time.Minute, 0, nil, "hard after 0s"},
		"progress":                {time.Minute, time.Hour, steps{sleep(59 * time.Second), progress, sleep(59 * time.Second), progress}, "idle after 2m58s"},
		"progress to the end":     {time.Minute, 2 * time.Minute, steps{sleep(59 * time.Second), progress, sleep(59 * time.Second), progress}, "hard after 2m0s"},
		"progress without idle":   {none, time.Minute, steps{sleep(59 * time.Second), progress}, "hard after 1m0s"},
		"progress when it is due": {time.Minute, time.Hour, steps{sleep(time.Minute), sleep(1), progress}, "idle after 1m0s"},
		"pause":                   {time.Minute, time.Hour, steps{sleep(50 * time.Second), pause, sleep(time.Hour), resume}, "idle after 1h1m50s"},
		"pause of hard":           {none, time.Minute, steps{sleep(50 * time.Second), pause, sleep(time.Hour), resume}, "hard after 1h1m0s"},
		"pauses of both":          {time.Minute, 90 * time.Second, steps{sleep(50 * time.Second), pause, sleep(time.Hour), resume}, "hard after 1h1m30s"},
		"not resumed":             {time.Minute, time.Hour, steps{pause}, "nothing"},
		"overlapping":             {time.Minute, time.Hour, steps{pause, sleep(time.Hour), pause, resume, sleep(time.Hour), resume}, "idle after 2h1m0s"},
		"half resumed":            {time.Minute, time.Hour, steps{pause, pause, resume}, "nothing"},
		"resumed too often":       {time.Minute, time.Hour, steps{resume, resume, pause, sleep(time.Hour), resume}, "idle after 1h1m0s"},
		"progress in a pause":     {time.Minute, time.Hour, steps{pause, progress}, "nothing"},
		"again":                   {none, time.Minute, steps{sleep(20 * time.Second), pause, resume, sleep(20 * time.Second), pause, sleep(time.Hour), resume}, "hard after 1h1m0s"},
		"allowed to idle":         {time.Minute, time.Hour, steps{sleep(time.Second), allowIdle, progress}, "hard after 1h0m0s"},
		"allowed in a pause":      {time.Minute, time.Hour, steps{pause, allowIdle, sleep(time.Hour), resume}, "hard after 2h0m0s"},
		"allowed without hard":    {time.Minute, none, steps{allowIdle}, "nothing"},
		"allowed without limits":  {none, none, steps{allowIdle}, "nothing"},
		"allowed after the end":   {time.Minute, time.Hour, steps{sleep(time.Hour), allowIdle}, "idle after 1m0s"},
		"stop":                    {time.Minute, time.Hour, steps{sleep(time.Second), (*pausetimer.Timer).Stop, progress, pause, resume}, "nothing"},
		"stop in a pause":         {time.Minute, time.Hour, steps{pause, (*pausetimer.Timer).Stop, resume}, "nothing"},
		"stop twice":              {time.Minute, time.Hour, steps{(*pausetimer.Timer).Stop, (*pausetimer.Timer).Stop}, "nothing"},
		"all after the end":       {time.Minute, time.Hour, steps{sleep(time.Hour), pause, progress, resume, (*pausetimer.Timer).Stop}, "idle after 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s pausetimer.Scheduler
				timer, e := start(&s, test.idle, test.hard)
				for _, step := range test.steps {
					step(timer)
				}
				time.Sleep(decade)
				if got := e.got(); got != test.want {
					t.Errorf("expired: %s, want %s", got, test.want)
				}
				if got := e.got(); got != "nothing" {
					t.Errorf("expired again: %s", got)
				}
				timer.Stop()
			})
		})
	}
}

// A Timer that was never started has no limits.
func TestZeroTimer(t *testing.T) {
	var timer pausetimer.Timer
	timer.Progress()
	timer.Pause()
	timer.Resume()
	timer.Stop()
	if at, ok := timer.Deadline(); ok {
		t.Errorf("its deadline is %v", at)
	}
	if got := timer.Remaining(); got != endless {
		t.Errorf("%v remain", got)
	}
}

// The deadline is that of the hard limit, moved by pauses; what remains is that
// of the first limit.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s pausetimer.Scheduler
		begun := time.Now()
		timer, _ := start(&s, time.Minute, time.Hour)
		check := func(when string, deadline, remaining time.Duration) {
			t.Helper()
			at, ok := timer.Deadline()
			if ok != (deadline > 0) || ok && at.Sub(begun) != deadline {
				t.Errorf("%s the deadline is %v, %t, want %v", when, at.Sub(begun), ok, deadline)
			}
			if got := timer.Remaining(); got != remaining {
				t.Errorf("%s %v remain, want %v", when, got, remaining)
			}
		}
		check("at first", time.Hour, time.Minute)
		time.Sleep(10 * time.Second)
		check("later", time.Hour, 50*time.Second)
		timer.Progress()
		check("after progress", time.Hour, time.Minute)
		timer.Pause()
		check("in a pause", 0, endless)
		time.Sleep(time.Minute)
		timer.Resume()
		check("after a pause", time.Hour+time.Minute, time.Minute)
		time.Sleep(time.Minute)
		synctest.Wait()
		check("at the end", time.Hour+time.Minute, 0)
		timer.Stop()

		timer, _ = start(&s, time.Minute, none)
		check("without a hard limit", 0, time.Minute)
		timer.Stop()
		timer, _ = start(&s, none, endless)
		check("without an end", 0, endless)
	})
}

// A slow is an Expirer that takes its time.
type slow struct{ begun, end chan struct{} }

func (s *slow) Expired(pausetimer.Limit) {
	close(s.begun)
	<-s.end
}

// Stop waits for the Expirer, however often it is called. Meanwhile other Timers
// of the scheduler expire.
func TestStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s pausetimer.Scheduler
		var timer pausetimer.Timer
		e := &slow{make(chan struct{}), make(chan struct{})}
		timer.Start(&s, e, time.Minute, none)
		other, f := start(&s, time.Minute, none)
		defer other.Stop()
		<-e.begun
		if got := f.got(); got != "idle after 1m0s" {
			t.Errorf("another expired: %s", got)
		}
		timer.Pause()
		timer.Progress()
		timer.Resume()
		var stopped atomic.Int32
		for range 2 {
			go func() {
				timer.Stop()
				stopped.Add(1)
			}()
		}
		time.Sleep(time.Hour)
		if n := stopped.Load(); n != 0 {
			t.Errorf("%d of 2 did not wait", n)
		}
		close(e.end)
		synctest.Wait()
		if n := stopped.Load(); n != 2 {
			t.Errorf("%d of 2 have returned", n)
		}
	})
}

// Many Timers of one scheduler expire each in its time, in spite of those that
// are stopped, paused and started between them.
func TestScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s pausetimer.Scheduler
		random := rand.New(rand.NewPCG(1, 2))
		type entry struct {
			e    *expiry
			want string
		}
		var all []entry
		for range 1000 {
			limit := time.Duration(2+random.IntN(1000)) * time.Second
			timer, e := start(&s, limit, time.Hour)
			defer timer.Stop()
			want := fmt.Sprint("idle after ", limit)
			switch random.IntN(4) {
			case 0:
				timer.Stop()
				want = "nothing"
			case 1:
				timer.Pause()
				want = "nothing"
			case 2:
				time.Sleep(time.Second)
				timer.Progress()
				want = fmt.Sprint("idle after ", limit+time.Second)
			}
			all = append(all, entry{e, want})
		}
		time.Sleep(time.Hour)
		for i, a := range all {
			if got := a.e.got(); got != a.want {
				t.Errorf("%d expired: %s, want %s", i, got, a.want)
			}
		}
	})
}

// A scheduler that was stopped leaves Timers that run alone, and runs new ones.
func TestSchedulerStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s pausetimer.Scheduler
		s.Stop()
		timer, e := start(&s, time.Minute, none)
		s.Stop()
		time.Sleep(time.Minute)
		if got := e.got(); got != "idle after 1m0s" {
			t.Errorf("expired: %s", got)
		}
		timer.Stop()
		timer, _ = start(&s, time.Minute, none)
		timer.Stop()
		s.Stop()
		_, e = start(&s, time.Hour, none)
		time.Sleep(time.Hour)
		if got := e.got(); got != "idle after 1h0m0s" {
			t.Errorf("after Stop a Timer expired: %s", got)
		}
	})
}

// A tally counts its calls.
type tally struct{ n atomic.Int32 }

func (c *tally) Expired(pausetimer.Limit) { c.n.Add(1) }

// However its methods meet, a Timer expires once at most, never after Stop has
// returned, and never in a pause.
func TestTimerRace(t *testing.T) {
	var s pausetimer.Scheduler
	var expired atomic.Int32
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(worker)))
			for range 2000 {
				var timer pausetimer.Timer
				var c tally
				limit := func() time.Duration { return time.Duration(random.IntN(100)) * time.Microsecond }
				timer.Start(&s, &c, limit(), limit())
				var users sync.WaitGroup
				for range 2 {
					users.Go(timer.Progress)
					users.Go(func() {
						timer.Pause()
						timer.Deadline()
						if paused := timer.Remaining() == endless; paused && c.n.Load() > 0 {
							t.Error("expired in a pause")
						}
						timer.Resume()
					})
				}
				if random.IntN(2) == 0 {
					users.Wait()
				}
				timer.Stop()
				n := c.n.Load()
				users.Wait()
				if n > 1 || n != c.n.Load() {
					t.Errorf("expired %d times before Stop returned, and then %d", n, c.n.Load())
				}
				expired.Add(n)
			}
		})
	}
	all.Wait()
	t.Logf("%d of 8000 expired", expired.Load())
}

// The limits of a call allocate nothing.
func TestAllocations(t *testing.T) {
	var s pausetimer.Scheduler
	var timer pausetimer.Timer
	c := new(tally)
	if n := testing.AllocsPerRun(1000, func() {
		timer = pausetimer.Timer{}
		timer.Start(&s, c, time.Minute, time.Hour)
		timer.Progress()
		timer.Pause()
		timer.Resume()
		timer.Stop()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	s.Stop()
}

func BenchmarkTimer(b *testing.B) {
	var s pausetimer.Scheduler
	c := new(tally)
	var timer pausetimer.Timer
	b.ReportAllocs()
	for b.Loop() {
		timer = pausetimer.Timer{}
		timer.Start(&s, c, time.Minute, time.Hour)
		timer.Stop()
	}
	s.Stop()
}
