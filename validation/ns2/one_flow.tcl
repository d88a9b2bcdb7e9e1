# One flow over 7.31 Mbit/s, with the packets listed in drops= lost before the bottleneck's queue and,
# of those that are left, the ones listed in marks= marked behind it; both count from 0, the SYN.
# Prints the time [s] and sequence number of every packet that the sender sends.
#   ns one_flow.tcl agent=Sack1 access=10 T=8 drops=21,40 marks=7
array set given {agent Sack1 access 100 T 8 drops "" marks ""}
foreach pair $argv { lassign [split $pair =] name value; set given($name) $value }
Agent/TCP set useHeaders_ false
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 60
Agent/TCP set tcpTick_ 0.001
Agent/TCP set ecn_ [expr {$given(marks) ne ""}]
Agent/TCPSink set packetSize_ 40
set ns [new Simulator]
$defaultRNG seed 11
set source [$ns node]; set first [$ns node]; set second [$ns node]; set sink [$ns node]
$ns simplex-link $source $first $given(access)Mb 2ms DropTail
$ns simplex-link $first $source 80000Mb 2ms DropTail
$ns simplex-link $first $second 7.31Mb 20.0137ms DropTail
$ns simplex-link $second $first 80000Mb 20.0137ms DropTail
$ns duplex-link $second $sink 80000Mb 1ms DropTail
$ns queue-limit $source $first 100000
$ns queue-limit $first $second 5000
if {$given(drops) ne ""} {
    set losses [new ErrorModel/List]
    $losses droplist [split $given(drops) ,]
    $losses unit packet
    $losses drop-target [new Agent/Null]
    $ns lossmodel $losses $first $second
}
if {$given(marks) ne ""} {
    set marker [new ErrorModel/List]
    $marker droplist [split $given(marks) ,]
    $marker unit packet
    $marker set markecn_ true
    $ns link-lossmodel $marker $first $second
}
set tcp [new Agent/TCP/$given(agent)]
set receiver [expr {$given(agent) eq "Sack1" ? [new Agent/TCPSink/Sack1] : [new Agent/TCPSink]}]
$ns attach-agent $source $tcp
$ns attach-agent $sink $receiver
$ns connect $tcp $receiver
set ftp [new Application/FTP]
$ftp attach-agent $tcp
set trace [open "| awk {\$1 == \"+\" {print \$2, \$11}} >@ stdout" w]
$ns trace-queue $source $first $trace
$ns at 0.0 "$ftp start"
$ns at $given(T) "close $trace; exit 0"
$ns run
