<?php
// Tollgate with the extension phpredis. Not run by our tests.
$client = new Redis();
$client->connect('127.0.0.1', 6380);
// 16 at once, then 30 per 60 seconds.
[$limited, , $remaining, $retryAfter] = $client->rawCommand('CL.THROTTLE', 'user123', '15', '30', '60');
echo "limited=$limited remaining=$remaining retry_after=$retryAfter\n";
