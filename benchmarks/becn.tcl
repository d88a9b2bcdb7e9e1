# Dumbbell of the BECN paper for timing ns-2: n NewReno flows with ECN over RED in byte mode.
#   ns becn.tcl FLOWS SECONDS SEED
#
#   source i --100 Mbit/s, 2 ms-- r0 --10 Mbit/s, 40 ms, RED-- r1 --100 Mbit/s, 2 ms-- sink i
#
# Nothing is traced or sampled; at the end it prints the packets that were acknowledged.
lassign $argv flows seconds seed

remove-all-packet-headers
add-packet-header Flags IP TCP
set ns [new Simulator]
$ns use-scheduler Calendar
$defaultRNG seed $seed

foreach {name value} {
    useHeaders_ false  packetSize_ 1000  window_ 100  tcpTick_ 0.1  minrto_ 1.0  singledup_ 0  ecn_ 1
} { Agent/TCP set $name $value }
Agent/TCPSink set packetSize_ 40
Queue set limit_ 1000
foreach {name value} {
    bytes_ true  queue_in_bytes_ true  mean_pktsize_ 1000  thresh_ 15  maxthresh_ 45  linterm_ 10
    q_weight_ 0.002  gentle_ false  wait_ true  setbit_ true
} { Queue/RED set $name $value }

set r0 [$ns node]
set r1 [$ns node]
$ns simplex-link $r0 $r1 10Mb 40ms RED
$ns simplex-link $r1 $r0 10Mb 40ms DropTail
$ns queue-limit $r0 $r1 90

set start [new RandomVariable/Uniform]
$start set min_ 0.0
$start set max_ 5.0
for {set i 0} {$i < $flows} {incr i} {
    set source [$ns node]
    set target [$ns node]
    $ns duplex-link $source $r0 100Mb 2ms DropTail
    $ns duplex-link $r1 $target 100Mb 2ms DropTail
    set tcp($i) [new Agent/TCP/Newreno]
    set sink [new Agent/TCPSink]
    $ns attach-agent $source $tcp($i)
    $ns attach-agent $target $sink
    $ns connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [$start value] "$ftp start"
}
proc finish {} {
    global tcp flows
    set acked 0
    for {set i 0} {$i < $flows} {incr i} { incr acked [$tcp($i) set ack_] }
    puts $acked
    exit 0
}
$ns at $seconds finish
$ns run
