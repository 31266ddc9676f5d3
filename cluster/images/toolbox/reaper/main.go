// Reaper removes what a run owns once the harness that owns it is gone.
//
// It speaks the line protocol of testcontainers' Ryuk, behind a first line with the secret of the
// run, "streamquake-reaper/2 SECRET": a client connects, sends that and filters such as
// "label=streamquake.run=42", and reads "ACK" for each line. A client that does not know the secret
// is cut off and changes nothing. When no client has been connected for the grace time, every
// container, network and volume that matches a filter is removed.
package main

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	protocol      = "streamquake-reaper/2 "
	shortest      = 32 // characters of a secret
	longestLine   = 4096
	mostFilters   = 16
	mostStrangers = 16 // clients at a time that have not told the secret yet
	toldWithin    = 5 * time.Second
	ofARun        = "streamquake.run=" // what a label that is reaped begins with
)

func main() {
	secret := os.Getenv("REAPER_SECRET")
	if len(secret) < shortest {
		log.Fatalf("REAPER_SECRET: expected at least %d characters, got %d", shortest, len(secret))
	}
	port := setting("RYUK_PORT", "8080")
	firstClient := duration("RYUK_CONNECTION_TIMEOUT", time.Minute)
	grace := duration("RYUK_RECONNECTION_TIMEOUT", 5*time.Second)
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on %s, grace %s", port, grace)
	filters := await(listener, secret, firstClient, grace)
	listener.Close()
	engine := newEngine(setting("DOCKER_SOCKET", "/var/run/docker.sock"))
	if left := engine.removeAll(filters); left > 0 {
		log.Fatalf("%d left behind", left)
	}
}

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func duration(name string, otherwise time.Duration) time.Duration {
	value, err := time.ParseDuration(setting(name, otherwise.String()))
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	return value
}

type session struct {
	change int // +1 for a client that came, -1 for one that went, 0 for a filter
	filter string
}

// await returns the filters heard, once nobody has been connected for the grace time.
func await(listener net.Listener, secret string, firstClient, grace time.Duration) []string {
	sessions := make(chan session)
	go accept(listener, secret, sessions)
	heard := map[string]bool{}
	clients := 0
	timer := time.NewTimer(firstClient)
	for {
		select {
		case s := <-sessions:
			clients += s.change
			if s.filter != "" && len(heard) < mostFilters {
				heard[s.filter] = true
			}
			timer.Stop()
			if clients == 0 {
				timer = time.NewTimer(grace)
			}
		case <-timer.C:
			return keys(heard)
		}
	}
}

func keys(set map[string]bool) []string {
	var list []string
	for key := range set {
		list = append(list, key)
	}
	return list
}

func accept(listener net.Listener, secret string, sessions chan<- session) {
	strangers := make(chan struct{}, mostStrangers)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		strangers <- struct{}{}
		go func() {
			defer conn.Close()
			lines := bufio.NewScanner(conn)
			lines.Buffer(make([]byte, 0, 256), longestLine)
			known := knows(conn, lines, secret)
			<-strangers
			if known {
				serve(conn, lines, sessions)
			}
		}()
	}
}

// knows reads the first line, within its time, and says whether the client knows the secret.
func knows(conn net.Conn, lines *bufio.Scanner, secret string) bool {
	conn.SetReadDeadline(time.Now().Add(toldWithin))
	defer conn.SetReadDeadline(time.Time{})
	said := ""
	if lines.Scan() {
		said = lines.Text()
	}
	return subtle.ConstantTimeCompare([]byte(said), []byte(protocol+secret)) == 1
}

// serve hears the filters of a client, which counts as connected until its connection ends.
func serve(conn net.Conn, lines *bufio.Scanner, sessions chan<- session) {
	sessions <- session{change: 1}
	defer func() { sessions <- session{change: -1} }()
	fmt.Fprintln(conn, "ACK")
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if _, err := asQuery(line); err != nil {
			log.Printf("not a filter: %q: %v", line, err)
			return
		}
		sessions <- session{filter: line}
		fmt.Fprintln(conn, "ACK")
	}
}

type engine struct{ client *http.Client }

func newEngine(socket string) engine {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	transport := &http.Transport{DialContext: dial}
	return engine{&http.Client{Transport: transport, Timeout: time.Minute}}
}

// A network goes only after its containers, so a failed round is tried again.
const rounds = 10

func (e engine) removeAll(filters []string) int {
	left := 0
	for round := 0; round < rounds; round++ {
		left = 0
		for _, filter := range filters {
			left += e.removeMatching(filter)
		}
		if left == 0 {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	return left
}

// removeMatching returns how many things a filter still matches afterwards.
func (e engine) removeMatching(filter string) int {
	query, err := asQuery(filter)
	if err != nil {
		log.Printf("not a filter: %q: %v", filter, err)
		return 0
	}
	return e.removeContainers(query) + e.removeNetworks(query) + e.removeVolumes(query)
}

// asQuery turns "label=streamquake.run=42" into the engine's JSON form of filters. No other thing
// than a run can be named, so that no mistake removes what belongs to somebody else.
func asQuery(filter string) (string, error) {
	values, err := url.ParseQuery(filter)
	if err != nil {
		return "", err
	}
	run := values.Get("label")
	if len(values) != 1 || len(values["label"]) != 1 || !strings.HasPrefix(run, ofARun) || run == ofARun {
		return "", fmt.Errorf("expected label=%sRUN", ofARun)
	}
	encoded, err := json.Marshal(values)
	return url.QueryEscape(string(encoded)), err
}

func (e engine) removeContainers(query string) int {
	var found []struct{ Id string }
	if !e.get("/containers/json?all=1&filters="+query, &found) {
		return 1
	}
	self, _ := os.Hostname()
	left := 0
	for _, container := range found {
		if !strings.HasPrefix(container.Id, self) {
			left += e.remove("/containers/" + container.Id + "?force=1&v=1")
		}
	}
	return left
}

func (e engine) removeNetworks(query string) int {
	var found []struct{ Id string }
	if !e.get("/networks?filters="+query, &found) {
		return 1
	}
	left := 0
	for _, network := range found {
		left += e.remove("/networks/" + network.Id)
	}
	return left
}

func (e engine) removeVolumes(query string) int {
	var found struct{ Volumes []struct{ Name string } }
	if !e.get("/volumes?filters="+query, &found) {
		return 1
	}
	left := 0
	for _, volume := range found.Volumes {
		left += e.remove("/volumes/" + url.PathEscape(volume.Name) + "?force=1")
	}
	return left
}

func (e engine) get(path string, into any) bool {
	response, err := e.client.Get("http://engine" + path)
	if err != nil {
		log.Print(err)
		return false
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		log.Printf("%s: %s", path, response.Status)
		return false
	}
	return json.NewDecoder(response.Body).Decode(into) == nil
}

// remove returns 1 when the thing is still there.
func (e engine) remove(path string) int {
	request, err := http.NewRequest(http.MethodDelete, "http://engine"+path, nil)
	if err != nil {
		return 1
	}
	response, err := e.client.Do(request)
	if err != nil {
		log.Print(err)
		return 1
	}
	defer response.Body.Close()
	log.Printf("remove %s: %s", path, response.Status)
	if response.StatusCode < 300 || response.StatusCode == http.StatusNotFound {
		return 0
	}
	return 1
}
